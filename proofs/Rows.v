(** Schedules in rows: each of [P] ranks has [J] segments of [C] instructions. Some of them may have no elements, so
    that all ranks have the same number. A stream has one instruction of a segment at each end. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model Order Determined Collective Checker Flow.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments Nat.eqb : simpl never.
#[local] Arguments Nat.div : simpl never.
#[local] Arguments Nat.modulo : simpl never.

Lemma sum_blocks : forall j C f, sum (j * C) f = sum j (fun u => sum C (fun m => f (u * C + m))).
Proof. induction j; intros C f; auto. replace (S j * C) with (j * C + C) by lia. rewrite sum_split, IHj. reflexivity.
  Qed.

Lemma sum_one : forall n f m, m < n -> (forall i, i < n -> i <> m -> f i = 0) -> sum n f = f m.
Proof.
  intros n f m M H. rewrite (sum_cut n f m) by (auto; intros; apply H; lia). rewrite sum_zero; [lia|]. intros.
  apply H; lia.
Qed.

(** One instruction of a row: its length, sources and sinks. *)
Record slot := { size : nat; from : list operand; into : list operand }.
Definition nothing : slot := {| size := 0; from := []; into := [] |}.

Section Rows.
Variables P J C : nat.
Variable row : nat -> nat -> nat -> slot.
Variable ports : nat -> nat * nat.

Definition rank_of (i : nat) : nat := i / C / J.
Definition segment_of (i : nat) : nat := (i / C) mod J.
Definition slot_of (i : nat) : nat := i mod C.
Definition index (q j m : nat) : nat := (q * J + j) * C + m.

Definition row_instr (i : nat) : instr :=
  let q := rank_of i in let x := row q (segment_of i) (slot_of i) in
  {| node := q; lane := q; len := size x; sources := from x; sinks := into x; after := [] |}.

Definition rows : schedule :=
  {| count := P * J * C; ins := row_instr;
     streams := fun s => {| origin := fst (ports s); readers := [snd (ports s)]; capacity := None |} |}.

Lemma index_parts : forall q j m, j < J -> m < C ->
  rank_of (index q j m) = q /\ segment_of (index q j m) = j /\ slot_of (index q j m) = m.
Proof.
  intros q j m JJ M. unfold rank_of, segment_of, slot_of, index.
  assert (E : ((q * J + j) * C + m) / C = q * J + j) by (rewrite Nat.add_comm, Nat.div_add, Nat.div_small by lia; lia).
  rewrite E. split; [|split].
  - rewrite Nat.add_comm, Nat.div_add, Nat.div_small by lia. lia.
  - rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. lia.
  - rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. lia.
Qed.

Lemma index_lt : forall q j m, q < P -> j < J -> m < C -> index q j m < P * J * C.
Proof. intros q j m Q JJ M. unfold index. assert (S (q * J + j) <= P * J) by nia. nia. Qed.

Lemma index_of : forall i, i < P * J * C -> exists q j m, i = index q j m /\ q < P /\ j < J /\ m < C.
Proof.
  intros i I. assert (C <> 0) by nia. assert (J <> 0) by nia. exists (i / C / J), ((i / C) mod J), (i mod C).
  pose proof (Nat.div_mod i C ltac:(auto)). pose proof (Nat.div_mod (i / C) J ltac:(auto)).
  split; [unfold index; nia|]. split; [|split; apply Nat.mod_upper_bound; auto].
  apply Nat.div_lt_upper_bound; auto. apply Nat.div_lt_upper_bound; auto. nia.
Qed.

Definition earlier (j m j' m' : nat) : Prop := j < j' \/ j = j' /\ m < m'.

Lemma index_earlier : forall q j m j' m', m < C -> m' < C -> index q j m < index q j' m' <-> earlier j m j' m'.
Proof. intros q j m j' m' M M'. unfold index, earlier. split; intros H; [|nia]. nia. Qed.

Lemma row_at : forall q j m, j < J -> m < C -> row_instr (index q j m) =
  {| node := q; lane := q; len := size (row q j m); sources := from (row q j m); sinks := into (row q j m);
    after := [] |}.
Proof. intros q j m JJ M. unfold row_instr. now destruct (index_parts q j m JJ M) as (-> & -> & ->). Qed.

Definition pushed_by (q m s j : nat) : nat := if mentions (into (row q j m)) s then size (row q j m) else 0.
Definition popped_by (q m s j : nat) : nat := if mentions (from (row q j m)) s then size (row q j m) else 0.

(** The terms of one slot of a row, of a sum in which all others vanish. *)
Lemma sum_row : forall q j m f, m < C -> (forall i, i < q * J * C -> f i = 0) ->
  (forall u n, n < C -> n <> m -> u <= j -> f (index q u n) = 0) -> sum (index q j m) f = sum j (fun u => f (index q u
    m)).
Proof.
  intros q j m f M Z O. unfold index at 1. replace ((q * J + j) * C + m) with (q * J * C + (j * C + m)) by lia.
  rewrite sum_split, sum_zero by auto. cbn. rewrite sum_split, sum_blocks, (sum_zero m).
  - rewrite Nat.add_0_r. apply sum_ext. intros u U. rewrite (sum_one C _ m); auto.
    + f_equal. unfold index. lia.
    + intros n N NM. replace (q * J * C + (u * C + n)) with (index q u n) by (unfold index; lia). apply O; auto. lia.
  - intros n N. replace (q * J * C + (j * C + n)) with (index q j n) by (unfold index; lia). apply O; auto; lia.
Qed.

Variable c : collective.
Variable scratch : nat -> nat.
Variable V : nat -> nat -> nat -> nat -> tree.
Variable got : nat -> nat -> nat -> nat -> nat -> tree.
Variable time : nat -> nat -> nat -> nat.

Definition value_at (i : nat) : nat -> tree := V (rank_of i) (segment_of i) (slot_of i).
(** The contents of the buffers of a rank before one of its instructions. *)
Definition held (q j m : nat) : nat -> nat -> option tree := before rows c value_at q (index q j m).
Definition source_at (q j m k : nat) (o : operand) : option tree :=
  match o with Buf b s => held q j m b (s + k) | Str s => Some (got q j m s k) end.

Record in_rows : Prop := {
  w_inside : forall q j m b s, q < P -> j < J -> m < C -> In (Buf b s) (from (row q j m) ++ into (row q j m)) ->
    s + size (row q j m) <= room c scratch q b;
  w_kept : forall q j m s, q < P -> j < J -> m < C -> ~ In (Buf 0 s) (into (row q j m));
  w_aligned : forall q j m o p, q < P -> j < J -> m < C -> In o (into (row q j m)) ->
    In p (into (row q j m) ++ from (row q j m)) -> apart (size (row q j m)) o p;
  w_push : forall q j m q' j' m' s, q < P -> j < J -> m < C -> q' < P -> j' < J -> m' < C ->
    mentions (into (row q j m)) s = true -> mentions (into (row q' j' m')) s = true -> q = q' /\ m = m';
  w_pop : forall q j m j' m' s, q < P -> j < J -> m < C -> j' < J -> m' < C ->
    mentions (from (row q j m)) s = true -> mentions (from (row q j' m')) s = true -> m = m';
  w_stream : forall q j m s, q < P -> j < J -> m < C -> mentions (from (row q j m)) s = true ->
    exists q' j' m', q' < P /\ j' < J /\ m' < C /\ mentions (into (row q' j' m')) s = true /\
    sum j' (pushed_by q' m' s) = sum j (popped_by q m s) /\ size (row q' j' m') = size (row q j m) /\
    time q' j' m' < time q j m /\ forall k, k < size (row q j m) -> got q j m s k = V q' j' m' k;
  w_time : forall q j m j' m', q < P -> j' < J -> m < C -> m' < C -> earlier j m j' m' -> time q j m < time q j' m';
  w_value : forall q j m k, q < P -> j < J -> m < C -> k < size (row q j m) ->
    value (map (source_at q j m k) (from (row q j m))) = Some (V q j m k) }.

Hypothesis D : in_rows.

Lemma push_at_row : forall q j m s, q < P -> j < J -> m < C -> mentions (into (row q j m)) s = true ->
  push_at rows (index q j m) s = sum j (pushed_by q m s).
Proof.
  intros q j m s Q JJ M S. unfold push_at. cbn [ins rows]. rewrite sum_row; auto.
  - apply sum_ext. intros u U. unfold pushes. rewrite row_at by (auto; lia). reflexivity.
  - intros i I. destruct (index_of i ltac:(nia)) as (q' & j' & m' & -> & Q' & J' & M'). unfold pushes.
    rewrite row_at by auto. cbn [sinks]. destruct (mentions (into (row q' j' m')) s) eqn:E; auto. exfalso.
    destruct (w_push D q j m q' j' m' s) as [<- _]; auto. unfold index in I. nia.
  - intros u n N NM U. unfold pushes. rewrite row_at by (auto; lia). cbn [sinks].
    destruct (mentions (into (row q u n)) s) eqn:E; auto. exfalso. apply NM.
    destruct (w_push D q u n q j m s) as [_ H]; auto. lia.
Qed.

Lemma pop_at_row : forall q j m s, q < P -> j < J -> m < C -> mentions (from (row q j m)) s = true ->
  pop_at rows (index q j m) s = sum j (popped_by q m s).
Proof.
  intros q j m s Q JJ M S. unfold pop_at. cbn [ins rows]. rewrite (row_at q j m) by auto. cbn [node].
  rewrite sum_row; auto.
  - apply sum_ext. intros u U. unfold pops. rewrite row_at by (auto; lia). cbn [sources node len].
    rewrite Nat.eqb_refl, andb_true_r.
    reflexivity.
  - intros i I. destruct (index_of i ltac:(nia)) as (q' & j' & m' & -> & Q' & J' & M').
    rewrite row_at by auto. cbn [node]. destruct (Nat.eqb_spec q' q) as [->|]; [unfold index in I; nia|].
    now rewrite andb_false_r.
  - intros u n N NM U. unfold pops. rewrite row_at by (auto; lia). cbn [sources].
    destruct (mentions (from (row q u n)) s) eqn:E; auto. exfalso. apply NM. apply (w_pop D q u n j m s); auto. lia.
Qed.

Lemma rows_flow : flow rows c scratch value_at (fun i => got (rank_of i) (segment_of i) (slot_of i))
  (fun i => time (rank_of i) (segment_of i) (slot_of i)).
Proof.
  constructor; cbn [count ins rows streams capacity].
  - constructor; cbn [count ins rows].
    + intros i i' s I I'. destruct (index_of i I) as (q & j & m & -> & Q & JJ & M).
      destruct (index_of i' I') as (q' & j' & m' & -> & Q' & J' & M'). unfold pushes. rewrite !row_at by auto.
      cbn [lane sinks].
      intros A B. now destruct (w_push D q j m q' j' m' s).
    + intros i i' s _ _ _ _ E. exact E.
  - reflexivity.
  - reflexivity.
  - intros i b s I. destruct (index_of i I) as (q & j & m & -> & Q & JJ & M). rewrite row_at by auto.
    now apply (w_inside D).
  - intros i s I. destruct (index_of i I) as (q & j & m & -> & Q & JJ & M). rewrite row_at by auto.
    now apply (w_kept D).
  - intros i o p I. cbn [count rows] in I. destruct (index_of i I) as (q & j & m & -> & Q & JJ & M). cbn [ins rows].
    rewrite row_at by auto. now apply (w_aligned D).
  - intros i s I. destruct (index_of i I) as (q & j & m & -> & Q & JJ & M). unfold pops. rewrite row_at by auto.
    cbn [sources].
    intros S. destruct (w_stream D q j m s Q JJ M S) as (q' & j' & m' & Q' & J' & M' & S' & X & L & T & G).
    exists (index q' j' m'). unfold pushes, value_at. rewrite row_at by auto. cbn [sinks len].
    destruct (index_parts q j m JJ M) as (-> & -> & ->), (index_parts q' j' m' J' M') as (-> & -> & ->).
    rewrite push_at_row, pop_at_row by auto. split; [now apply index_lt|auto 10].
  - intros i i' I L. destruct (index_of i I) as (q & j & m & -> & Q & JJ & M).
    destruct (index_of i' ltac:(lia)) as (q' & j' & m' & -> & Q' & J' & M'). rewrite !row_at by auto. cbn [lane].
    intros <-.
    destruct (index_parts q' j m JJ M) as (-> & -> & ->), (index_parts q' j' m' J' M') as (-> & -> & ->).
    apply (w_time D); auto. now apply (index_earlier q').
  - intros i j _ _ E. exact E.
  - intros i k I. destruct (index_of i I) as (q & j & m & -> & Q & JJ & M). rewrite row_at by auto. cbn [len sources].
    intros K.
    pose proof (w_value D q j m k Q JJ M K) as W. unfold value_at. destruct (index_parts q j m JJ M) as (A & B & E).
    rewrite A, B, E, <- W. f_equal. apply map_ext. intros [b s|s]; cbn; [|now rewrite A, B, E].
    unfold held. now rewrite A.
Qed.

End Rows.

(** The last instruction of a rank that wrote a place, before another one and at the end. *)
Section Held.
Variables P J C : nat.
Variable row : nat -> nat -> nat -> slot.
Variable ports : nat -> nat * nat.
Variable c : collective.
Variable V : nat -> nat -> nat -> nat -> tree.

Lemma held_input : forall q j m x, q < P -> j < J -> m < C ->
  (forall j' m' s, j' < J -> m' < C -> ~ In (Buf 0 s) (into (row q j' m'))) ->
  held P J C row ports c V q j m 0 x = inputs c (PBuf q 0 x).
Proof.
  intros q j m x Q JJ M K. unfold held. apply before_input. intros l s L N I.
  pose proof (index_lt P J C q j m Q JJ M). destruct (index_of P J C l ltac:(lia)) as (q' & j' & m' & -> & Q' & J' &
  M').
  cbn [ins rows] in *. rewrite row_at in * by auto. cbn [node sinks] in *. subst q'. now apply (K j' m' s).
Qed.

Lemma last_written : forall i q j m b s k, q < P -> j < J -> m < C -> i <= P * J * C -> index J C q j m < i ->
  (forall t, In (Buf b t) (into (row q j m)) -> t = s) -> In (Buf b s) (into (row q j m)) -> k < size (row q j m) ->
  (forall j' m', j' < J -> m' < C -> earlier j m j' m' -> index J C q j' m' < i -> forall t,
    In (Buf b t) (into (row q j' m')) ->
    s + k < t \/ t + size (row q j' m') <= s + k) ->
  before (rows P J C row ports) c (value_at J C V) q i b (s + k) = Some (V q j m k).
Proof.
  intros i q j m b s k Q JJ M I L ONE IN K H. rewrite (before_last _ _ _ q i (index J C q j m)); auto.
  - unfold value_at. now destruct (index_parts J C q j m JJ M) as (-> & -> & ->).
  - cbn [ins rows]. now rewrite row_at by auto.
  - cbn [ins rows]. rewrite row_at by auto. cbn [len sinks].
    destruct (buffer_element (size (row q j m)) (into (row q j m)) b (s + k)) as [l|] eqn:E.
    + destruct (buffer_element_some _ _ _ _ _ E) as (_ & t & IT & X). rewrite (ONE t IT) in X. f_equal. lia.
    + exfalso. apply (buffer_element_here (size (row q j m)) (into (row q j m)) b s (s + k) IN); [lia|exact E].
  - intros l LL N t IT. destruct (index_of P J C l ltac:(lia)) as (q' & j' & m' & -> & Q' & J' & M').
    cbn [ins rows] in *. rewrite row_at in * by auto. cbn [node len sinks] in *. subst q'. apply H; auto; [|lia].
    apply (index_earlier J C q); auto. lia.
Qed.
(** A place that a rank has written, and always with one value. *)
Lemma same_written : forall i q j m b s k t, q < P -> j < J -> m < C -> i <= P * J * C -> index J C q j m < i ->
  In (Buf b s) (into (row q j m)) -> k < size (row q j m) ->
  (forall j' m' s' k', j' < J -> m' < C -> In (Buf b s') (into (row q j' m')) -> k' < size (row q j' m') ->
    s' + k' = s + k -> V q j' m' k' = t) ->
  before (rows P J C row ports) c (value_at J C V) q i b (s + k) = Some t.
Proof.
  intros i q j m b s k t Q JJ M I L IN K SAME. apply before_same.
  - exists (index J C q j m). cbn [ins rows]. rewrite row_at by auto. cbn [node len sinks]. split; [auto|split; [auto|]].
    apply (buffer_element_here _ _ b s (s + k) IN). lia.
  - intros l k' LL N E. destruct (index_of P J C l ltac:(lia)) as (q' & j' & m' & -> & Q' & J' & M').
    cbn [ins rows] in *. rewrite row_at in * by auto. cbn [node len sinks] in *. subst q'.
    destruct (buffer_element_some _ _ _ _ _ E) as (KS & s' & IS & X). unfold value_at.
    destruct (index_parts J C q j' m' J' M') as (-> & -> & ->). apply (SAME j' m' s' k'); auto.
Qed.
End Held.

(** * Contributions of expressions over lists *)
Lemma leaves_fold : forall (f : nat -> tree) l t, leaves (fold_left (fun t w => Node t (f w)) l t) =
  leaves t ++ flat_map (fun w => leaves (f w)) l.
Proof. induction l as [|w l IH]; intros t; cbn; [now rewrite app_nil_r|]. rewrite IH. cbn. now rewrite app_assoc. Qed.

Lemma flat_map_map : forall A B (f : nat -> list A) (g : A -> B) l,
  flat_map (fun w => map g (f w)) l = map g (flat_map f l).
Proof. induction l; cbn; auto. now rewrite IHl, map_app. Qed.

Lemma flat_map_contributions : forall e (f : nat -> list nat) l,
  flat_map (fun w => contributions e (f w)) l = contributions e (flat_map f l).
Proof. intros. apply flat_map_map. Qed.

Lemma flat_map_same : forall A B (f g : A -> list B) l, (forall w, In w l -> f w = g w) -> flat_map f l = flat_map g l.
Proof. induction l; cbn; intros H; auto. rewrite H, IHl; auto. Qed.
