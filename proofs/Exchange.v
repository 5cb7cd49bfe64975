(** Allreduces by exchanges among the ranks that differ in one digit,
  for every list of factors: recursive multiplying of
    crates/algorithms/src/catalog/recursive_multiplying.rs without a wrap, and recursive doubling of
    crates/algorithms/src/catalog/recursive_doubling.rs, whose first ranks fold in pairs, for every number of ranks.
    All ranks evaluate the same expression, in ascending order of ranks. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Unisono Require Import Model Order Determined Collective Checker Ranks Flow Rows.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments Nat.eqb : simpl never.
#[local] Arguments Nat.div : simpl never.
#[local] Arguments Nat.modulo : simpl never.
#[local] Arguments Nat.even : simpl never.
#[local] Arguments Nat.mul : simpl never.
#[local] Arguments Nat.sub : simpl nomatch.

Section Exchange.
(** [rest] pairs of ranks fold to virtual ranks, of which the factors [fs] are digits; vectors of [n] elements. *)
Variable rest : nat.
Variable fs : list nat.
Variable n : nat.

Definition stages : nat := length fs.
Definition factor (k : nat) : nat := nth k fs 1.
Fixpoint weight (k : nat) : nat := match k with 0 => 1 | S h => weight h * factor h end.
Definition whole : nat := weight stages.
Definition P : nat := whole + rest.

(** The virtual rank of a rank, the rank of a virtual rank that stays, and the even rank of a pair, which does not. *)
Definition number (q : nat) : nat := if q <? 2 * rest then q / 2 else q - rest.
Definition rank (v : nat) : nat := if v <? rest then 2 * v + 1 else v + rest.
Definition folded (q : nat) : bool := (q <? 2 * rest) && Nat.even q.

Definition digit (k v : nat) : nat := (v / weight k) mod factor k.
(** The member of the group of [v] in stage [k] that has digit [d]. *)
Definition peer (k v d : nat) : nat := (v / weight (S k) * factor k + d) * weight k + v mod weight k.
(** The streams of stage [k] begin with number [base k]; those of a virtual rank lead to the digits after its own. *)
Definition base (k : nat) : nat := rest + sum k (fun h => whole * (factor h - 1)).
Definition message (k v i : nat) : nat := base k + v * (factor k - 1) + i.
(** The number, from 1 on, of the message from digit [d] to digit [e]. *)
Definition gap (k d e : nat) : nat := if d <? e then e - d else e + factor k - d.

(** The place of the partial result before stage [k]. *)
Definition have (k q : nat) : operand := Buf (if (k =? 0) && negb (q <? 2 * rest) then 0 else 1) 0.

Definition send (k q : nat) : slot :=
  {| size := n; from := [have k q]; into := map (fun i => Str (message k (number q) i)) (seq 0 (factor k - 1)) |}.
Definition receive (k q : nat) : slot :=
  let v := number q in
  {| size := n; into := [Buf 1 0];
     from := map (fun d => if d =? digit k v then have k q else Str (message k (peer k v d) (gap k d (digit k v) - 1)))
       (seq 0 (factor k)) |}.
Definition move_to (o p : operand) : slot := {| size := n; from := [o]; into := [p] |}.
Definition join (q : nat) : slot := {| size := n; from := [Str (q / 2); Buf 0 0]; into := [Buf 1 0] |}.

(** Segment 0 folds, segment [S k] is stage [k], and the last one expands;
  a rank sends in slot 0 and receives in slot 1. *)
Definition exchange_row (q j m : nat) : slot :=
  match j with
  | 0 => if q <? 2 * rest then
           if Nat.even q then if m =? 0 then move_to (Buf 0 0) (Str (q / 2)) else nothing
           else if m =? 0 then nothing else join q
         else nothing
  | S k => if k <? stages then if folded q then nothing else if m =? 0 then send k q else receive k q
           else if q <? 2 * rest then
             if Nat.even q then if m =? 0 then nothing else move_to (Str (base stages + q / 2)) (Buf 1 0)
             else if m =? 0 then move_to (Buf 1 0) (Str (base stages + q / 2)) else nothing
           else nothing
  end.

(** The ends of the stream that has number [x] among those of the stages from [k] on. *)
Fixpoint stage_ports (left : list nat) (k x : nat) : nat * nat :=
  match left with
  | [] => (2 * x + 1, 2 * x)
  | f :: later => if x <? whole * (f - 1) then
      let v := x / (f - 1) in (rank v, rank (peer k v ((digit k v + x mod (f - 1) + 1) mod f)))
    else stage_ports later (S k) (x - whole * (f - 1))
  end.
Definition exchange_ports (s : nat) : nat * nat := if s <? rest then (2 * s,
  2 * s + 1) else stage_ports fs 0 (s - rest).

Definition exchange : schedule := rows P (S (S stages)) 2 exchange_row exchange_ports.
Definition exchange_streams : nat := base stages + rest.

Variable in_order : bool.
Variable scratch : nat -> nat.
Hypothesis SOME : 1 <= stages.
Hypothesis REST : rest <= whole.
Hypothesis TWO : forall k, k < stages -> 2 <= factor k.

Definition ec : collective := {| what := Allreduce; ranks := P; elems := n; root := 0; ordered := in_order |}.

(** The expression over a group of virtual ranks: number [g] of the groups before stage [k]. *)
Fixpoint group (k g e : nat) : tree :=
  match k with
  | 0 => if g <? rest then Node (Leaf (2 * g) e) (Leaf (2 * g + 1) e) else Leaf (g + rest) e
  | S h => fold_left (fun t d => Node t (group h (g * factor h + d) e)) (seq 1 (factor h - 1)) (group h (g * factor h)
    e)
  end.

Definition V (q j m e : nat) : tree :=
  match j with
  | 0 => if m =? 0 then Leaf q e else group 0 (q / 2) e
  | S k => if k <? stages then if m =? 0 then group k (number q / weight k) e else group (S k) (number q / weight (S k))
    e
           else group stages 0 e
  end.
Definition got (q j m s e : nat) : tree :=
  match j with
  | 0 => Leaf (q - 1) e
  | S k => if k <? stages then group k ((s - base k) / (factor k - 1) / weight k) e else group stages 0 e
  end.

(** * Arithmetic of digits *)
Lemma weight_pos : forall k, k <= stages -> 0 < weight k.
Proof. induction k; intros K; cbn; [lia|]. specialize (IHk ltac:(lia)). pose proof (TWO k ltac:(lia)). nia. Qed.

Lemma weight_divides : forall k, k <= stages -> exists c, whole = c * weight k.
Proof.
  intros k K. unfold whole. generalize stages K. induction 1 as [|m M (c & E)]; [exists 1; lia|].
  exists (c * factor m). cbn [weight]. rewrite E. lia.
Qed.

Lemma split_digit : forall k v, k < stages -> v / weight k = v / weight (S k) * factor k + digit k v.
Proof.
  intros k v K. pose proof (weight_pos k ltac:(lia)). pose proof (TWO k K). unfold digit. cbn [weight].
  rewrite <- Nat.div_div by lia. rewrite (Nat.mul_comm (_ / _)). apply Nat.div_mod. lia.
Qed.

Lemma digit_lt : forall k v, k < stages -> digit k v < factor k.
Proof. intros k v K. pose proof (TWO k K). apply Nat.mod_upper_bound. lia. Qed.

Lemma peer_group : forall k v d, k < stages -> peer k v d / weight k = v / weight (S k) * factor k + d.
Proof.
  intros k v d K. pose proof (weight_pos k ltac:(lia)). unfold peer. rewrite Nat.div_add_l by lia.
  rewrite (Nat.div_small (v mod weight k)) by (apply Nat.mod_upper_bound; lia). lia.
Qed.

Lemma peer_lt : forall k v d, k < stages -> v < whole -> d < factor k -> peer k v d < whole.
Proof.
  intros k v d K B D. destruct (weight_divides (S k) K) as (c & E). pose proof (weight_pos k ltac:(lia)).
  pose proof (weight_pos (S k) K). assert (Q : v / weight (S k) < c) by (apply Nat.div_lt_upper_bound; lia).
  pose proof (Nat.mod_upper_bound v (weight k) ltac:(lia)) as M. unfold peer.
  assert (G : forall x r, x < c -> r < weight k -> (x * factor k + d) * weight k + r < c * (weight k * factor k)).
  { intros x r X R. assert (x * factor k + d + 1 <= c * factor k) by nia. nia. }
  rewrite E. now apply G.
Qed.

Lemma number_lt : forall q, q < P -> number q < whole.
Proof.
  intros q Q. unfold number, P in *. destruct (Nat.ltb_spec q (2 * rest)); [|lia].
  apply Nat.lt_le_trans with rest; auto. apply Nat.div_lt_upper_bound; lia.
Qed.

Lemma rank_lt : forall v, v < whole -> rank v < P.
Proof. intros v B. unfold rank, P. destruct (Nat.ltb_spec v rest); lia. Qed.

Lemma odd_half : forall h, (2 * h + 1) / 2 = h.
Proof. intros. rewrite (Nat.mul_comm 2), Nat.div_add_l by lia. change (1 / 2) with 0. lia. Qed.
Lemma even_half : forall h, 2 * h / 2 = h.
Proof. intros. rewrite Nat.mul_comm. apply Nat.div_mul. lia. Qed.

Lemma halves : forall q, exists h, q / 2 = h /\ (Nat.even q = true /\ q = 2 * h \/ Nat.even q = false /\ q = 2 * h + 1).
Proof.
  intros q. destruct (Nat.even q) eqn:E.
  - apply Nat.even_spec in E as [h ->]. exists h. rewrite even_half. auto.
  - assert (O : Nat.odd q = true) by (unfold Nat.odd; now rewrite E). apply Nat.odd_spec in O as [h ->]. exists h.
    rewrite odd_half. auto.
Qed.

Lemma number_rank : forall v, v < whole -> number (rank v) = v /\ folded (rank v) = false.
Proof.
  intros v B. unfold number, rank, folded. destruct (Nat.ltb_spec v rest).
  - destruct (Nat.ltb_spec (2 * v + 1) (2 * rest)); [|lia]. rewrite odd_half. split; auto. cbn.
    replace (2 * v + 1) with (S (2 * v)) by lia. now rewrite Nat.even_succ, <- Nat.negb_even, Nat.even_mul.
  - destruct (Nat.ltb_spec (v + rest) (2 * rest)); [lia|]. cbn. split; [lia|auto].
Qed.

Lemma rank_number : forall q, q < P -> folded q = false -> rank (number q) = q.
Proof.
  intros q Q F. unfold number, rank, folded in *. destruct (Nat.ltb_spec q (2 * rest)).
  - destruct (halves q) as (h & E & [[E2 X]|[E2 X]]); rewrite E2 in F; cbn in F; [discriminate|]. rewrite E.
    destruct (Nat.ltb_spec h rest); lia.
  - destruct (Nat.ltb_spec (q - rest) rest); lia.
Qed.

Lemma base_ascending : ascending base.
Proof.
  intros a b AB. unfold base. replace b with (a + (b - a)) by lia. rewrite sum_split. lia.
Qed.

Lemma base_next : forall k, base (S k) = base k + whole * (factor k - 1).
Proof. intros. unfold base. cbn [sum]. lia. Qed.

Lemma gap_range : forall k d e, d < factor k -> e < factor k -> d <> e -> 0 < gap k d e < factor k.
Proof. intros k d e D E NE. unfold gap. destruct (Nat.ltb_spec d e); lia. Qed.

Lemma message_range : forall k v i, k < stages -> v < whole -> i < factor k - 1 -> base k <= message k v i < base (S k).
Proof. intros k v i K B I. rewrite base_next. unfold message. pose proof (TWO k K). nia. Qed.

Lemma message_sender : forall k v i, k < stages -> i < factor k - 1 -> (message k v i - base k) / (factor k - 1) = v.
Proof.
  intros k v i K I. unfold message. rewrite <- Nat.add_assoc, (Nat.add_comm (base k)), Nat.add_sub.
  rewrite Nat.div_add_l, Nat.div_small by lia. lia.
Qed.

(** * The rows *)
Inductive at_slot (q j m : nat) : slot -> Prop :=
  | at_nothing : at_slot q j m nothing
  | at_up : j = 0 -> m = 0 -> q / 2 < rest -> q = 2 * (q / 2) -> at_slot q j m (move_to (Buf 0 0) (Str (q / 2)))
  | at_join : j = 0 -> m <> 0 -> q / 2 < rest -> q = 2 * (q / 2) + 1 -> at_slot q j m (join q)
  | at_send : forall k, j = S k -> k < stages -> m = 0 -> folded q = false -> at_slot q j m (send k q)
  | at_receive : forall k, j = S k -> k < stages -> m <> 0 -> folded q = false -> at_slot q j m (receive k q)
  | at_down : stages < j -> m = 0 -> q / 2 < rest -> q = 2 * (q / 2) + 1 -> at_slot q j m (move_to (Buf 1 0) (Str (base
    stages + q / 2)))
  | at_last : stages < j -> m <> 0 -> q / 2 < rest -> q = 2 * (q / 2) -> at_slot q j m (move_to (Str (base stages + q /
    2)) (Buf 1 0)).

Lemma row_cases : forall q j m, at_slot q j m (exchange_row q j m).
Proof.
  intros q j m. destruct (halves q) as (h & E & C). unfold exchange_row.
  destruct j as [|k]; [|destruct (Nat.ltb_spec k stages); [destruct (folded q) eqn:F|]].
  - destruct (Nat.ltb_spec q (2 * rest)); [|constructor].
    destruct C as [[-> X]|[-> X]]; destruct (Nat.eqb_spec m 0); cbv iota; first [apply at_nothing | apply at_up; auto;
    lia | apply at_join; auto; lia].
  - constructor.
  - destruct (Nat.eqb_spec m 0); econstructor; eauto.
  - destruct (Nat.ltb_spec q (2 * rest)); [|constructor].
    destruct C as [[-> X]|[-> X]]; destruct (Nat.eqb_spec m 0); cbv iota; first [apply at_nothing | apply at_down;
    auto; lia | apply at_last; auto; lia].
Qed.

(** A stream belongs to one segment. *)
Definition in_segment (j s : nat) : Prop := match j with 0 => s < rest | S k => base k <= s /\ (k < stages -> s < base
  (S k)) end.

Lemma one_segment : forall j j' s, j <= S stages -> j' <= S stages -> in_segment j s -> in_segment j' s -> j = j'.
Proof.
  assert (B0 : base 0 = rest) by (unfold base; cbn; lia).
  assert (G : forall j j' s, j < j' -> j' <= S stages -> in_segment j s -> in_segment j' s -> False).
  { intros j j' s L B I I'. destruct j' as [|k']; [lia|]. destruct I' as [I' _]. destruct j as [|k]; cbn in I.
    - pose proof (base_ascending 0 k' ltac:(lia)). lia.
    - destruct I as [_ I]. specialize (I ltac:(lia)). pose proof (base_ascending (S k) k' ltac:(lia)). lia. }
  intros j j' s B B' I I'. destruct (Nat.lt_trichotomy j j') as [L|[E|L]]; auto; exfalso; eauto.
Qed.

Lemma in_receive : forall k q o, In o (from (receive k q)) -> o = have k q \/
  exists d, d < factor k /\ d <> digit k (number q) /\ o = Str (message k (peer k (number q) d) (gap k d (digit k
  (number q)) - 1)).
Proof.
  intros k q o I. cbn [from receive] in I. apply in_map_iff in I as (d & <- & I). apply in_seq in I.
  destruct (Nat.eqb_spec d (digit k (number q))); [auto|]. right. exists d. split; [lia|auto].
Qed.

Lemma row_pushes : forall q j m s, q < P -> j < S (S stages) -> mentions (into (exchange_row q j m)) s = true ->
  m = 0 /\ in_segment j s /\
  match j with 0 => q = 2 * s | S k => if k <? stages then folded q = false /\ number q = (s - base k) / (factor k - 1)
                                       else q = 2 * (s - base stages) + 1 end.
Proof.
  intros q j m s Q J H. apply in_streams in H. pose proof (number_lt q Q).
  destruct (row_cases q j m) as [ | -> -> B E | -> M B E|k -> K -> F|k -> K M F|JS -> B E|JS M B E];
  cbn [into send receive move_to join nothing] in H.
  - contradiction.
  - destruct H as [H|[]]. injection H as <-. cbn. auto.
  - destruct H as [H|[]]. discriminate.
  - apply in_map_iff in H as (i & H & I). apply in_seq in I. injection H as <-. cbn [in_segment].
    pose proof (message_range k (number q) i K ltac:(auto) ltac:(lia)). split; auto. split; [lia|].
    destruct (Nat.ltb_spec k stages); [|lia]. now rewrite message_sender by lia.
  - destruct H as [H|[]]. discriminate.
  - destruct H as [H|[]]. injection H as <-. destruct j as [|k]; [lia|]. cbn [in_segment].
    replace k with stages by lia. destruct (Nat.ltb_spec stages stages); [lia|]. split; auto. split; lia.
  - destruct H as [H|[]]. discriminate.
Qed.

Lemma row_pops : forall q j m s, q < P -> j < S (S stages) -> mentions (from (exchange_row q j m)) s = true ->
  m <> 0 /\ in_segment j s /\
  match j with
  | 0 => s < rest /\ q = 2 * s + 1
  | S k => if k <? stages then folded q = false /\ exists d, d < factor k /\ d <> digit k (number q) /\
             s = message k (peer k (number q) d) (gap k d (digit k (number q)) - 1)
           else base stages <= s /\ s - base stages < rest /\ q = 2 * (s - base stages)
  end.
Proof.
  intros q j m s Q J H. apply in_streams in H. pose proof (number_lt q Q) as NL.
  destruct (row_cases q j m) as [ | -> -> B E | -> M B E|k -> K -> F|k -> K M F|JS -> B E|JS M B E];
  cbn [from send move_to join nothing] in H.
  - contradiction.
  - destruct H as [H|[]]. discriminate.
  - destruct H as [H|[H|[]]]; [|discriminate]. injection H as <-. cbn. auto.
  - destruct H as [H|[]]. discriminate.
  - apply in_receive in H as [H|(d & D & DN & H)]; [discriminate|]. injection H as ->. cbn [in_segment].
    pose proof (gap_range k d (digit k (number q)) D (digit_lt k _ K) DN).
    pose proof (message_range k (peer k (number q) d) (gap k d (digit k (number q)) - 1) K (peer_lt k _ d K NL D)
    ltac:(lia)).
    split; auto. split; [lia|]. destruct (Nat.ltb_spec k stages); [|lia]. split; auto. exists d. auto.
  - destruct H as [H|[]]. discriminate.
  - destruct H as [H|[]]. injection H as <-. destruct j as [|k]; [lia|]. cbn [in_segment].
    replace k with stages by lia. destruct (Nat.ltb_spec stages stages); [lia|]. split; auto. split; lia.
Qed.

Lemma row_sink : forall q j m b s, In (Buf b s) (into (exchange_row q j m)) -> b = 1 /\ s = 0 /\ m <> 0.
Proof.
  intros q j m b s H. destruct (row_cases q j m); cbn [into send receive move_to join nothing] in H;
    try (apply in_map_iff in H as (i & H & _); discriminate); try contradiction; destruct H as [H|[]];
      try discriminate; injection H as <- <-; auto.
Qed.

Lemma row_source : forall q j m b s, In (Buf b s) (from (exchange_row q j m)) -> (b = 0 \/ b = 1) /\ s = 0.
Proof.
  assert (HV : forall k q b s, have k q = Buf b s -> (b = 0 \/ b = 1) /\ s = 0).
  { intros k q b s H. unfold have in H. injection H as <- <-. destruct (_ && _); auto. }
  intros q j m b s H. destruct (row_cases q j m) as [| | |k|k| |]; try apply in_receive in H as [H|(d & _ & _ & H)];
  cbn [from send move_to join nothing] in H;
    repeat match type of H with In _ (_ :: _) => destruct H as [H|H] | In _ [] => contradiction end; try discriminate;
      try (now apply (HV k q));
    injection H as <- <-; auto.
Qed.

Lemma row_size : forall q j m, size (exchange_row q j m) = n \/ exchange_row q j m = nothing.
Proof. intros. destruct (row_cases q j m); cbn; auto. Qed.

Lemma sizes : forall r, r < P -> input_size ec r = n /\ output_size ec r = n.
Proof.
  intros r R. unfold input_size, output_size, block. cbn [what ranks elems ec].
  replace (r <? P) with true by (symmetry; apply Nat.ltb_lt; auto). auto.
Qed.

(** The value of the first operand and the others, in the order of digits. *)
Lemma value_digits : forall (h : nat -> option tree) t f, 0 < f -> (forall d, d < f -> h d = Some (t d)) ->
  value (map h (seq 0 f)) = Some (fold_left (fun a d => Node a (t d)) (seq 1 (f - 1)) (t 0)).
Proof.
  intros h t f F H. destruct f as [|f]; [lia|]. cbn [seq map value]. rewrite H by lia. replace (S f - 1) with f by lia.
  assert (G : forall l a, (forall d, In d l -> h d = Some (t d)) ->
    fold_left combine (map h l) (Some a) = Some (fold_left (fun a d => Node a (t d)) l a)).
  { induction l as [|d l IH]; intros a HL; cbn; auto. rewrite HL by (now left). cbn. apply IH. intros. apply HL.
    now right. }
  apply G. intros d D. apply in_seq in D. apply H. lia.
Qed.

Notation held := (held P (S (S stages)) 2 exchange_row exchange_ports ec V).

(** The contributions that a rank that stays has before stage [k]. *)
Lemma have_value : forall q k m e, q < P -> k <= stages -> m < 2 -> e < n -> folded q = false ->
  source_at P (S (S stages)) 2 exchange_row exchange_ports ec V got q (S k) m e (have k q) = Some (group k (number q /
    weight k) e).
Proof.
  intros q k m e Q K M E F. unfold have, source_at. destruct ((k =? 0) && negb (q <? 2 * rest)) eqn:C.
  - apply andb_true_iff in C as [C1 C2]. apply Nat.eqb_eq in C1. subst k. apply negb_true_iff, Nat.ltb_ge in C2.
    rewrite held_input; auto; [|lia|intros j' m' s _ _ I; apply row_sink in I; lia]. cbn [inputs Nat.add].
    rewrite (proj1 (sizes q Q)).
    destruct (Nat.ltb_spec e n); [|lia]. cbn [weight group]. rewrite Nat.div_1_r. unfold number.
    destruct (Nat.ltb_spec q (2 * rest)); [lia|]. destruct (Nat.ltb_spec (q - rest) rest); [lia|]. do 2 f_equal. lia.
  - assert (R : exchange_row q k 1 = match k with 0 => join q | S h => receive h q end).
    { unfold exchange_row. change (1 =? 0) with false. destruct k as [|h].
      - cbn in C. apply negb_false_iff in C. unfold folded in F. rewrite C in *. cbn in F. now rewrite F.
      - destruct (Nat.ltb_spec h stages); [|lia]. now rewrite F. }
    unfold Rows.held. rewrite (last_written P (S (S stages)) 2 exchange_row exchange_ports ec V _ q k 1 1 0 e); auto;
    try lia.
    + unfold V. change (1 =? 0) with false. destruct k as [|h].
      * cbn [weight]. rewrite Nat.div_1_r. cbn in C. apply negb_false_iff in C. unfold number. now rewrite C.
      * destruct (Nat.ltb_spec h stages); [auto|lia].
    + pose proof (index_lt P (S (S stages)) 2 q (S k) m Q ltac:(lia) M). lia.
    + apply index_earlier; [lia|lia|left; lia].
    + intros t I. apply row_sink in I. lia.
    + rewrite R. destruct k; now left.
    + rewrite R. destruct k; cbn; lia.
    + intros j' m' J' M' E1 E2 t I. exfalso. apply row_sink in I. apply index_earlier in E2; [|lia|lia].
      unfold earlier in *. lia.
Qed.

Lemma exchange_in_rows : in_rows P (S (S stages)) 2 exchange_row exchange_ports ec scratch V got (fun _ j m => 2 * j +
  m).
Proof.
  constructor.
  - intros q j m b s Q J M I. destruct (sizes q Q) as [IN OUT]. unfold room. destruct (row_size q j m) as [->|E].
    + apply in_app_or in I as [I|I].
      * apply row_source in I as [[-> | ->] ->]; lia.
      * apply row_sink in I as (-> & -> & _). lia.
    + rewrite E in I. contradiction.
  - intros q j m s _ _ _ I. apply row_sink in I. lia.
  - intros q j m [b s|s] [b' s'|s'] _ _ _ IO IP; try exact Logic.I. intros _. left. apply row_sink in IO.
    apply in_app_or in IP as [IP|IP]; [apply row_sink in IP|apply row_source in IP]; lia.
  - intros q j m q' j' m' s Q J M Q' J' M' X Y. apply row_pushes in X as (-> & SX & X); auto.
    apply row_pushes in Y as (-> & SY & Y); auto.
    split; auto. assert (j = j') as <- by (apply (one_segment j j' s); auto; lia). destruct j as [|k]; [lia|].
    destruct (Nat.ltb_spec k stages); [|lia]. destruct X as [F X], Y as [F' Y].
    rewrite <- (rank_number q), <- (rank_number q') by auto. congruence.
  - intros q j m j' m' s Q J M J' M' X Y. apply row_pops in X as (X & _), Y as (Y & _); auto. lia.
  - intros q j m s Q J M X. pose proof (row_pops q j m s Q J X) as (MN & IS & C). pose proof (number_lt q Q) as NL.
    assert (SUM : forall q' m', q' < P -> sum j (pushed_by exchange_row q' m' s) = 0 /\ sum j (popped_by exchange_row q
    m s) = 0).
    { intros q' m' Q'. split; apply sum_zero; intros u U; unfold pushed_by, popped_by.
      - destruct (mentions (into (exchange_row q' u m')) s) eqn:E; auto.
        apply row_pushes in E as (_ & IU & _); [|auto|lia].
        pose proof (one_segment j u s ltac:(lia) ltac:(lia) IS IU). lia.
      - destruct (mentions (from (exchange_row q u m)) s) eqn:E; auto. apply row_pops in E as (_ & IU & _); [|auto|lia].
        pose proof (one_segment j u s ltac:(lia) ltac:(lia) IS IU). lia. }
    assert (FULL : size (exchange_row q j m) = n).
    { destruct (row_size q j m) as [|E]; auto. rewrite E in X. discriminate. }
    assert (G : exists q', q' < P /\ mentions (into (exchange_row q' j 0)) s = true /\ size (exchange_row q' j 0) = n /\
      forall e, e < n -> got q j m s e = V q' j 0 e).
    { destruct j as [|k]; [|destruct (Nat.ltb_spec k stages) as [K|K]].
      - destruct C as [B E]. exists (2 * s). split; [unfold P in *; lia|].
        assert (R : exchange_row (2 * s) 0 0 = move_to (Buf 0 0) (Str s)).
        { unfold exchange_row. destruct (Nat.ltb_spec (2 * s) (2 * rest)); [|lia]. rewrite Nat.even_mul, even_half.
          reflexivity. }
        rewrite R. split; [apply in_streams; now left|]. split; auto. intros e _. unfold got, V.
        change (0 =? 0) with true.
        replace (q - 1) with (2 * s) by lia. reflexivity.
      - destruct C as (F & d & D & DN & ->). pose proof (peer_lt k (number q) d K NL D) as PL.
        set (u := peer k (number q) d) in *.
        destruct (number_rank u PL) as [NR FR]. exists (rank u). split; [now apply rank_lt|].
        assert (R : exchange_row (rank u) (S k) 0 = send k (rank u)).
        { unfold exchange_row. destruct (Nat.ltb_spec k stages); [|lia]. now rewrite FR. }
        pose proof (gap_range k d (digit k (number q)) D (digit_lt k _ K) DN).
        rewrite R. split; [|split; auto].
        + apply in_streams. cbn [into send]. rewrite NR. apply in_map_iff. exists (gap k d (digit k (number q)) - 1).
          split; auto. apply in_seq. lia.
        + intros e _. unfold got, V. destruct (Nat.ltb_spec k stages); [|lia]. change (0 =? 0) with true.
          rewrite message_sender, NR by lia. reflexivity.
      - destruct C as (B & BR & E). set (h := s - base stages) in *. exists (2 * h + 1). split; [unfold P; lia|].
        assert (R : exchange_row (2 * h + 1) (S k) 0 = move_to (Buf 1 0) (Str s)).
        { unfold exchange_row. destruct (Nat.ltb_spec k stages); [lia|].
          destruct (Nat.ltb_spec (2 * h + 1) (2 * rest)); [|lia].
          rewrite odd_half. replace (2 * h + 1) with (S (2 * h)) by lia.
          rewrite Nat.even_succ, <- Nat.negb_even, Nat.even_mul.
          replace (base stages + h) with s by (unfold h; lia). reflexivity. }
        rewrite R. split; [apply in_streams; now left|]. split; auto. intros e _. unfold got, V.
        destruct (Nat.ltb_spec k stages); [lia|auto]. }
    destruct G as (q' & Q' & MI & SZ & GV). exists q', j, 0. destruct (SUM q' 0 Q') as [-> ->]. rewrite FULL, SZ.
    split; auto. split; auto. split; [lia|]. split; auto. split; auto. split; auto. split; [lia|auto].
  - intros q j m j' m' _ _ M M' E. unfold earlier in E. lia.
  - intros q j m e Q J M E. pose proof (number_lt q Q) as NL.
    destruct (row_cases q j m) as [ | -> -> B QE | -> MN B QE|k -> K -> F|k -> K MN F|JS -> B QE|JS MN B QE];
    cbn [size send receive move_to join nothing] in E.
    + lia.
    + cbn [from move_to map source_at]. rewrite held_input; [|exact Q|exact J|exact M|intros j' m' s _ _ I;
      apply row_sink in I; lia]. cbn.
      rewrite (proj1 (sizes q Q)). destruct (Nat.ltb_spec e n); [reflexivity|lia].
    + cbn [from join map source_at]. rewrite held_input; [|exact Q|exact J|exact M|intros j' m' s _ _ I;
      apply row_sink in I; lia]. cbn [inputs Nat.add].
      rewrite (proj1 (sizes q Q)). destruct (Nat.ltb_spec e n); [|lia]. unfold got, V.
      destruct (Nat.eqb_spec m 0); [lia|]. cbn [group value fold_left combine].
      destruct (Nat.ltb_spec (q / 2) rest); [|lia]. do 3 f_equal; lia.
    + cbn [from send map]. rewrite have_value by (auto; lia). unfold V.
      destruct (Nat.ltb_spec k stages); [reflexivity|lia].
    + cbn [from receive]. rewrite map_map. unfold V. destruct (Nat.ltb_spec k stages); [|lia].
      destruct (Nat.eqb_spec m 0); [lia|].
      cbn [group]. pose proof (TWO k K).
      rewrite (value_digits _ (fun d => group k (number q / weight (S k) * factor k + d) e));
      [now rewrite Nat.add_0_r|lia|].
      intros d D. destruct (Nat.eqb_spec d (digit k (number q))) as [->|DN].
      * rewrite have_value by (auto; lia). now rewrite (split_digit k (number q) K).
      * cbn [source_at]. unfold got. destruct (Nat.ltb_spec k stages); [|lia].
        pose proof (gap_range k d (digit k (number q)) D (digit_lt k _ K) DN). rewrite message_sender by lia.
        now rewrite peer_group.
    + assert (F : folded q = false).
      { unfold folded. rewrite QE. replace (2 * (q / 2) + 1) with (S (2 * (q / 2))) by lia.
        rewrite Nat.even_succ, <- Nat.negb_even, Nat.even_mul. apply andb_false_r. }
      replace j with (S stages) by lia. cbn [from move_to map]. pose proof (have_value q stages 0 e Q (le_n _)
      ltac:(lia) E F) as H.
      unfold have in H. destruct (Nat.eqb_spec stages 0); [lia|]. cbn [andb] in H. rewrite H. unfold V.
      destruct (Nat.ltb_spec stages stages); [lia|]. fold whole. rewrite Nat.div_small by auto. reflexivity.
    + replace j with (S stages) by lia. cbn [from move_to map source_at]. unfold got, V.
      destruct (Nat.ltb_spec stages stages); [lia|reflexivity].
Qed.

(** * The contributions of a group *)
Definition first (v : nat) : nat := v + Nat.min v rest.

Lemma intervals : forall s f, ascending s -> flat_map (fun d => seq (s d) (s (S d) - s d)) (seq 0 f) = seq (s 0) (s f -
  s 0).
Proof.
  intros s f A. induction f; [cbn; now rewrite Nat.sub_diag|]. rewrite seq_S, flat_map_app, IHf.
  cbn [flat_map Nat.add]. rewrite app_nil_r.
  pose proof (A 0 f ltac:(lia)). pose proof (A f (S f) ltac:(lia)). replace (s f) with (s 0 + (s f - s 0)) at 2 by lia.
  rewrite <- seq_app. f_equal. lia.
Qed.

Lemma leaves_digits : forall (t : nat -> tree) f, 0 < f -> leaves (fold_left (fun a d => Node a (t d)) (seq 1 (f - 1))
  (t 0)) =
  flat_map (fun d => leaves (t d)) (seq 0 f).
Proof.
  intros t f F. destruct f as [|f]; [lia|]. replace (S f - 1) with f by lia. cbn [seq flat_map].
  apply leaves_fold.
Qed.

Lemma group_leaves : forall k g e, k <= stages ->
  leaves (group k g e) = contributions e (seq (first (g * weight k)) (first (S g * weight k) - first (g * weight k))).
Proof.
  induction k; intros g e K; cbn [group weight].
  - rewrite !Nat.mul_1_r. unfold first. destruct (Nat.ltb_spec g rest); cbn [leaves app].
    + replace (S g + Nat.min (S g) rest - (g + Nat.min g rest)) with 2 by lia.
      replace (g + Nat.min g rest) with (2 * g) by lia.
      cbn. do 3 f_equal. f_equal. lia.
    + replace (S g + Nat.min (S g) rest - (g + Nat.min g rest)) with 1 by lia.
      replace (g + Nat.min g rest) with (g + rest) by lia. reflexivity.
  - pose proof (TWO k ltac:(lia)). pose proof (leaves_digits (fun d => group k (g * factor k + d) e) (factor k)
    ltac:(lia)) as LD.
    cbv beta in LD. rewrite Nat.add_0_r in LD. rewrite LD. clear LD.
    rewrite (flat_map_ext _ (fun d => contributions e (seq (first ((g * factor k + d) * weight k))
      (first ((g * factor k + S d) * weight k) - first ((g * factor k + d) * weight k))))).
    + rewrite flat_map_contributions. f_equal. rewrite (intervals (fun d => first ((g * factor k + d) * weight k))).
      * f_equal; [f_equal; lia|]. f_equal; f_equal; lia.
      * intros a b AB. unfold first. pose proof (Nat.mul_le_mono_r (g * factor k + a) (g * factor k + b) (weight k)
        ltac:(lia)). lia.
    + intros d. rewrite IHk by lia. do 2 f_equal. f_equal. f_equal. lia.
Qed.

(** All outputs hold the same expression. *)
Lemma exchange_output : forall st r e, reach exchange (inputs ec) st -> final exchange st -> r < P -> e < n ->
  mem st (PBuf r 1 e) = Some (group stages 0 e).
Proof.
  pose proof (rows_flow _ _ _ _ _ _ _ _ _ _ exchange_in_rows) as FL. intros st r e H F R E.
  pose proof (number_lt r R) as NL.
  rewrite (final_contents _ _ _ _ _ _ FL) by auto. unfold exchange. change e with (0 + e) at 1.
  assert (SAME : forall j, j < S (S stages) -> into (exchange_row r j 1) = [Buf 1 0] -> size (exchange_row r j 1) = n ->
    (forall j' m' t, j' < S (S stages) -> m' < 2 -> earlier j 1 j' m' -> ~ In (Buf 1 t) (into (exchange_row r j' m')))
      ->
    before (rows P (S (S stages)) 2 exchange_row exchange_ports) ec (value_at (S (S stages)) 2 V) r
      (count (rows P (S (S stages)) 2 exchange_row exchange_ports)) 1 (0 + e) = Some (V r j 1 e)).
  { intros j J IN SZ LATE. apply last_written; auto; try lia.
    - apply index_lt; auto.
    - intros t I. apply row_sink in I. lia.
    - rewrite IN. now left.
    - intros j' m' J' M' E1 _ t I. exfalso. now apply (LATE j' m' t). }
  destruct (folded r) eqn:FO.
  - assert (X := FO). unfold folded in X. apply andb_true_iff in X as [X1 X2].
    assert (R1 : exchange_row r (S stages) 1 = move_to (Str (base stages + r / 2)) (Buf 1 0)).
    { unfold exchange_row. destruct (Nat.ltb_spec stages stages); [lia|]. now rewrite X1, X2. }
    rewrite (SAME (S stages)); rewrite ?R1; auto.
    + unfold V. destruct (Nat.ltb_spec stages stages); [lia|auto].
    + intros j' m' t J' M' E1. unfold earlier in E1. lia.
  - assert (R1 : exchange_row r stages 1 = receive (stages - 1) r).
    { unfold exchange_row. destruct stages as [|k]; [lia|]. replace (S k - 1) with k by lia.
      destruct (Nat.ltb_spec k (S k)); [|lia]. now rewrite FO. }
    rewrite (SAME stages); rewrite ?R1; auto.
    + unfold V. destruct stages as [|k] eqn:SE; [lia|]. destruct (Nat.ltb_spec k (S k)); [|lia].
      change (1 =? 0) with false. cbv iota.
      unfold whole in NL. rewrite SE in NL. now rewrite Nat.div_small.
    + intros j' m' t J' M' E1 I. pose proof (row_sink r j' m' 1 t I) as (_ & _ & MN). unfold earlier in E1.
      replace j' with (S stages) in I by lia.
      unfold exchange_row in I. destruct (Nat.ltb_spec stages stages); [lia|]. unfold folded in FO.
      destruct (r <? 2 * rest); cbn in FO; [|contradiction].
      rewrite FO in I. destruct (Nat.eqb_spec m' 0); [lia|contradiction].
Qed.

Theorem exchange_correct : correct exchange ec scratch.
Proof.
  pose proof (rows_flow _ _ _ _ _ _ _ _ _ _ exchange_in_rows) as FL. apply (flow_correct _ _ _ _ _ _ FL).
  intros st H F r d k R DI KL.
  cbn [ranks ec] in R. unfold required in DI. rewrite (proj2 (sizes r R)) in DI.
  assert (D0 : d = {| d_from := 0; d_len := n; d_element := 0; d_first := 0; d_ranks := P |} /\ k < n).
  { destruct n; [contradiction|]. destruct DI as [<-|[]]. auto. }
  destruct D0 as [-> KN]. cbn [d_from d_len d_element d_first d_ranks Nat.add]. exists (group stages 0 k).
  split; [now apply exchange_output|]. rewrite group_leaves by auto. fold whole. unfold first.
  rewrite Nat.mul_0_l, Nat.mul_1_l. cbn [Nat.add Nat.min].
  replace (whole + Nat.min whole rest - 0) with P by (unfold P; lia). unfold alike. cbn [what ordered ec].
  now destruct in_order.
Qed.

End Exchange.

(** * Recursive doubling *)
Definition doubling_pairs (P : nat) : nat := P - 2 ^ Nat.log2 P.
Definition recursive_doubling (P n : nat) : schedule := exchange (doubling_pairs P) (repeat 2 (Nat.log2 P)) n.

Lemma nth_repeat_two : forall k m, k < m -> nth k (repeat 2 m) 1 = 2.
Proof. induction k; intros [|m] H; cbn; auto; try lia. apply IHk. lia. Qed.

Lemma weight_two : forall m k, k <= m -> weight (repeat 2 m) k = 2 ^ k.
Proof.
  induction k; intros K; auto. cbn [weight]. rewrite IHk by lia. unfold factor.
    rewrite nth_repeat_two, Nat.pow_succ_r' by lia. lia.
Qed.

Theorem recursive_doubling_correct : forall P n o, 2 <= P -> forall scratch,
  correct (recursive_doubling P n) {| what := Allreduce; ranks := P; elems := n; root := 0; ordered := o |} scratch.
Proof.
  intros P n o P2 scratch. pose proof (Nat.log2_spec P ltac:(lia)) as [LO HI]. rewrite Nat.pow_succ_r' in HI.
  pose proof (Nat.log2_le_mono 2 P P2) as L1. change (Nat.log2 2) with 1 in L1.
  assert (WH : whole (repeat 2 (Nat.log2 P)) = 2 ^ Nat.log2 P).
  { unfold whole, stages. rewrite repeat_length. now apply weight_two. }
  pose proof (exchange_correct (doubling_pairs P) (repeat 2 (Nat.log2 P)) n o scratch) as C. unfold ec, Exchange.P in C.
  rewrite WH in C. replace (2 ^ Nat.log2 P + doubling_pairs P) with P in C by (unfold doubling_pairs; lia).
  apply C; unfold stages, doubling_pairs; rewrite ?repeat_length; try lia.
  intros k K. unfold factor. rewrite nth_repeat_two by auto. lia.
Qed.

(** * Recursive multiplying *)
Definition product (fs : list nat) : nat := fold_left Nat.mul fs 1.
Definition recursive_multiplying (fs : list nat) (n : nat) : schedule := exchange 0 fs n.

Lemma whole_product : forall fs, whole fs = product fs.
Proof.
  intros fs. unfold whole, stages, product.
  assert (G : forall k, k <= length fs -> weight fs k = fold_left Nat.mul (firstn k fs) 1).
  { induction k; intros K; auto. cbn [weight]. rewrite IHk by lia. rewrite (firstn_more k fs 1) by lia.
    now rewrite fold_left_app. }
  rewrite G, firstn_all by auto. reflexivity.
Qed.

Theorem recursive_multiplying_correct : forall fs n o, fs <> [] -> (forall f, In f fs -> 2 <= f) -> forall scratch,
  correct (recursive_multiplying fs n) {| what := Allreduce; ranks := product fs; elems := n; root := 0;
    ordered := o |} scratch.
Proof.
  intros fs n o NE TWO scratch. pose proof (exchange_correct 0 fs n o scratch) as C. unfold ec, P in C.
  rewrite Nat.add_0_r, whole_product in C. apply C.
  - unfold stages. destruct fs; [congruence|cbn; lia].
  - lia.
  - intros k K. apply TWO, nth_In, K.
Qed.

(** Results of both have the same bits on all ranks, for every operator: each rank evaluates one expression. *)
Theorem exchange_repeatable : forall rest fs n o, fs <> [] -> rest <= whole fs -> (forall f, In f fs -> 2 <= f) ->
  forall st, reach (exchange rest fs n) (inputs (ec rest fs n o)) st -> final (exchange rest fs n) st ->
  forall r s k, r < P rest fs -> s < P rest fs -> k < n -> mem st (PBuf r 1 k) = mem st (PBuf s 1 k).
Proof.
  intros rest fs n o NE R TWO st H F r s k RB SB K.
  assert (S1 : 1 <= stages fs) by (unfold stages; destruct fs; [congruence|cbn; lia]).
  assert (T : forall k, k < stages fs -> 2 <= factor fs k) by (intros; apply TWO, nth_In; auto).
  now rewrite !(exchange_output rest fs n o (fun _ => 0) S1 R T st).
Qed.
