(** Allreduces by exchanges among the ranks that differ in one digit, for every list of factors. The first ranks may fold
    in pairs. All ranks evaluate the same expression, in ascending order of ranks. *)
From Unisono Require Import Families Digits.

#[local] Arguments Nat.even : simpl never.
#[local] Arguments Nat.mul : simpl never.

Section Exchange.
(** [rest] pairs of ranks fold to virtual ranks, of which the factors [fs] are digits; vectors of [n] elements. *)
Variable rest : nat.
Variable fs : list nat.
Variable n : nat.
Notation stages := (stages fs).
Notation factor := (factor fs).
Notation weight := (weight fs).
Notation whole := (whole fs).
Notation P := (P rest fs).
Notation number := (number rest).
Notation rank := (rank rest).
Notation folded := (folded rest).
Notation digit := (digit fs).
Notation peer := (peer fs).
Notation base := (base rest fs).
Notation message := (message rest fs).
Notation gap := (gap fs).
Notation group := (group rest fs).

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

(** Segment 0 folds, segment [S k] is stage [k], and the last one expands; a rank sends in slot 0, receives in slot 1. *)
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
Definition exchange_ports (s : nat) : nat * nat :=
  if s <? rest then (2 * s, 2 * s + 1) else stage_ports fs 0 (s - rest).

Definition exchange : schedule := rows P (S (S stages)) 2 exchange_row exchange_ports.
Definition exchange_streams : nat := base stages + rest.
Variable in_order : bool.
Variable scratch : nat -> nat.
Hypothesis SOME : 1 <= stages.
Hypothesis REST : rest <= whole.
Hypothesis TWO : forall k, k < stages -> 2 <= factor k.
Notation split_digit := (split_digit rest fs REST TWO).
Notation digit_lt := (digit_lt rest fs REST TWO).
Notation peer_group := (peer_group rest fs REST TWO).
Notation peer_lt := (peer_lt rest fs REST TWO).
Notation number_lt := (number_lt rest fs REST).
Notation rank_lt := (rank_lt rest fs REST).
Notation number_rank := (number_rank rest fs REST).
Notation rank_number := (rank_number rest fs REST).
Notation base_ascending := (base_ascending rest fs REST).
Notation gap_range := (gap_range rest fs REST).
Notation message_range := (message_range rest fs REST TWO).
Notation message_sender := (message_sender rest fs REST).
Notation group_leaves := (group_leaves rest fs REST TWO).

Definition ec : collective := {| what := Allreduce; ranks := P; elems := n; root := 0; ordered := in_order |}.

Definition V (q j m e : nat) : tree :=
  match j with
  | 0 => if m =? 0 then Leaf q e else group 0 (q / 2) e
  | S k => if k <? stages then
             if m =? 0 then group k (number q / weight k) e else group (S k) (number q / weight (S k)) e
           else group stages 0 e
  end.
Definition got (q j m s e : nat) : tree :=
  match j with
  | 0 => Leaf (q - 1) e
  | S k => if k <? stages then group k ((s - base k) / (factor k - 1) / weight k) e else group stages 0 e
  end.

(** * The rows *)
Inductive at_slot (q j m : nat) : slot -> Prop :=
  | at_nothing : at_slot q j m nothing
  | at_up : j = 0 -> m = 0 -> q / 2 < rest -> q = 2 * (q / 2) -> at_slot q j m (move_to (Buf 0 0) (Str (q / 2)))
  | at_join : j = 0 -> m <> 0 -> q / 2 < rest -> q = 2 * (q / 2) + 1 -> at_slot q j m (join q)
  | at_send : forall k, j = S k -> k < stages -> m = 0 -> folded q = false -> at_slot q j m (send k q)
  | at_receive : forall k, j = S k -> k < stages -> m <> 0 -> folded q = false -> at_slot q j m (receive k q)
  | at_down : stages < j -> m = 0 -> q / 2 < rest -> q = 2 * (q / 2) + 1 ->
      at_slot q j m (move_to (Buf 1 0) (Str (base stages + q / 2)))
  | at_last : stages < j -> m <> 0 -> q / 2 < rest -> q = 2 * (q / 2) ->
      at_slot q j m (move_to (Str (base stages + q / 2)) (Buf 1 0)).

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
Definition in_segment (j s : nat) : Prop :=
  match j with 0 => s < rest | S k => base k <= s /\ (k < stages -> s < base (S k)) end.

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
Proof. intros r. apply (sizes_of ec). Qed.

Notation held := (held P (S (S stages)) 2 exchange_row exchange_ports ec V).

(** The contributions that a rank that stays has before stage [k]. *)
Lemma have_value : forall q k m e, q < P -> k <= stages -> m < 2 -> e < n -> folded q = false ->
  source_at P (S (S stages)) 2 exchange_row exchange_ports ec V got q (S k) m e (have k q) =
    Some (group k (number q / weight k) e).
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
    assert (SUM : forall q' m', q' < P ->
      sum j (pushed_by exchange_row q' m' s) = 0 /\ sum j (popped_by exchange_row q m s) = 0).
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
    + cbn [from move_to map source_at].
      rewrite held_input by (auto; intros j' m' s _ _ I; apply row_sink in I; lia). cbn.
      rewrite (proj1 (sizes q Q)). destruct (Nat.ltb_spec e n); [reflexivity|lia].
    + cbn [from join map source_at].
      rewrite held_input by (auto; intros j' m' s _ _ I; apply row_sink in I; lia). cbn [inputs Nat.add]. rewrite (proj1 (sizes q Q)). destruct (Nat.ltb_spec e n); [|lia]. unfold got, V.
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
  one_demand d k n {| d_from := 0; d_len := n; d_element := 0; d_first := 0; d_ranks := P |} DI KL. exists (group stages 0 k).
  split; [now apply exchange_output|]. rewrite group_leaves by auto. fold whole. unfold first.
  rewrite Nat.mul_0_l, Nat.mul_1_l. cbn [Nat.add Nat.min].
  replace (whole + Nat.min whole rest - 0) with P by (unfold P; lia). unfold alike. cbn [what ordered ec].
  now destruct in_order.
Qed.

End Exchange.

