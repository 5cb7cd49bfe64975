(** The contents of all memory are determined: if the accesses of different lanes to one place are ordered whenever one
    of them writes, every execution that ends leaves the memory that the instructions leave when they run one after the
    other. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model Order.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.

Section Determined.
Variable sc : schedule.
Notation instr_of := (ins sc).

(** The place of a source or sink for element [k] of an instruction, by its position in its lane alone. *)
Definition source_place (i k : nat) (o : operand) : place :=
  match o with Buf b start => PBuf (node (instr_of i)) b (start + k) | Str s => PStr s (pop_at sc i s + k) end.
Definition sink_place (i k : nat) (o : operand) : place :=
  match o with Buf b start => PBuf (node (instr_of i)) b (start + k) | Str s => PStr s (push_at sc i s + k) end.

Definition in_memory (p : place) : Prop := match p with PBuf _ _ _ => True | PStr _ _ => False end.

Definition reads (i : nat) (p : place) : Prop :=
  exists k o, k < len (instr_of i) /\ In o (sources (instr_of i)) /\ source_place i k o = p.
Definition writes (i : nat) (p : place) : Prop :=
  exists k o, k < len (instr_of i) /\ In o (sinks (instr_of i)) /\ sink_place i k o = p.

(** Two instructions touch one place of memory, and one of them writes it. *)
Definition clash (i j : nat) : Prop :=
  exists p, in_memory p /\ ((writes i p /\ (reads j p \/ writes j p)) \/ (reads i p /\ writes j p)).

(** In every execution, [x] is complete before [j] starts; or before [j] is complete. *)
Definition over (j x : nat) : Prop := forall d, inv sc d -> 0 < d j -> d x = len (instr_of x).
Definition over_at_end (j x : nat) : Prop := forall d, inv sc d -> d j = len (instr_of j) -> d x = len (instr_of x).

(** Of two instructions of different lanes that clash, the one that comes first in the order is over when the other
    one starts. *)
Definition race_free (order : list nat) : Prop := forall pre j post i, order = pre ++ j :: post -> In i pre ->
  lane (instr_of i) <> lane (instr_of j) -> node (instr_of i) = node (instr_of j) -> clash i j -> over j i.

(** Slices of one buffer are the same or apart, so that only element [k] is read and written where element [k] is. *)
Definition apart (l : nat) (o p : operand) : Prop :=
  match o, p with Buf b x, Buf c y => b = c -> x = y \/ x + l <= y \/ y + l <= x | _, _ => True end.
Definition aligned : Prop := forall i o p, i < count sc -> In o (sinks (instr_of i)) ->
  In p (sinks (instr_of i) ++ sources (instr_of i)) -> apart (len (instr_of i)) o p.

(** The progress when the instructions of a list are complete. *)
Definition after_all (pre : list nat) : progress :=
  fold_left (fun d i => upd d i (len (instr_of i))) pre (fun _ => 0).

Lemma fold_upd : forall l d j, fold_left (fun d i => upd d i (len (instr_of i))) l d j =
  if in_dec Nat.eq_dec j l then len (instr_of j) else d j.
Proof.
  induction l as [|i l IH]; intros d j; cbn [fold_left]; auto. rewrite IH. unfold upd.
  destruct (in_dec Nat.eq_dec j l) as [I|N]; destruct (in_dec Nat.eq_dec j (i :: l)) as [I'|N']; auto.
  - exfalso. apply N'. now right.
  - destruct I' as [->|I']; [now rewrite Nat.eqb_refl|contradiction].
  - destruct (Nat.eqb_spec j i) as [->|]; auto. exfalso. apply N'. now left.
Qed.

Lemma after_all_spec : forall l j, after_all l j = if in_dec Nat.eq_dec j l then len (instr_of j) else 0.
Proof. intros. apply fold_upd. Qed.

Lemma runs_split : forall pre d i post, inv sc d -> runs sc d (pre ++ i :: post) ->
  let e := fold_left (fun d i => upd d i (len (instr_of i))) pre d in
  e i = 0 /\ inv sc e /\ ready sc e i (len (instr_of i)).
Proof.
  induction pre as [|x pre IH]; cbn; intros d i post V R.
  - tauto.
  - destruct R as (Z & RX & R). eapply IH; eauto. rewrite zero_add by auto. now apply inv_move.
Qed.

Lemma runs_complete : forall order d, runs sc d order ->
  forall i, i < count sc -> d i = len (instr_of i) \/ In i order.
Proof.
  induction order as [|x r IH]; cbn; intros d R i K; auto. destruct R as (_ & _ & R).
  destruct (IH _ R i K) as [E|I]; auto. destruct (Nat.eq_dec i x) as [->|N]; auto. rewrite upd_other in E; auto.
Qed.

Section Order.
Variable order : list nat.
Hypothesis E : ends sc.
Hypothesis R : runs sc (fun _ => 0) order.
Hypothesis positive : forall i, i < count sc -> 0 < len (instr_of i).

Lemma order_at : forall pre i post, order = pre ++ i :: post ->
  i < count sc /\ ~ In i pre /\ inv sc (after_all pre) /\ ready sc (after_all pre) i (len (instr_of i)) /\
  (forall j, j < i -> lane (instr_of j) = lane (instr_of i) -> In j pre).
Proof.
  intros pre i post O. pose proof R as R'. rewrite O in R'.
  destruct (runs_split pre (fun _ => 0) i post (inv_start sc) R') as (Z & V & RD).
  fold (after_all pre) in *. pose proof (r_known _ _ _ _ RD) as K.
  split; [auto|]. split; [|split; [auto|split; [auto|]]].
  - intros I. rewrite after_all_spec in Z. destruct in_dec; [|contradiction]. specialize (positive i K). lia.
  - intros j J L. pose proof (r_lane _ _ _ _ RD j J L) as D. rewrite after_all_spec in D.
    destruct in_dec; auto. assert (0 < len (instr_of j)) by (apply positive; lia). lia.
Qed.

Lemma in_order : forall i, i < count sc -> In i order.
Proof. intros i K. destruct (runs_complete _ _ R i K) as [Z|]; auto. specialize (positive i K). lia. Qed.

Lemma order_twice : forall pre i post, order = pre ++ i :: post -> ~ In i post.
Proof.
  intros pre i post O I. apply in_split in I as (a & b & ->).
  destruct (order_at (pre ++ i :: a) i b) as (_ & N & _); [rewrite O, <- app_assoc; auto|].
  apply N, in_or_app. right. now left.
Qed.

(** A stream has passed element [push_at i s + k] only if [i] has moved its element [k]. *)
Lemma pushed_reaches : forall d i s k, inv sc d -> i < count sc -> pushes (instr_of i) s = true ->
  k < len (instr_of i) -> push_at sc i s + k < pushed sc d s -> k < d i.
Proof.
  intros d i s k V K P L H. destruct (Nat.lt_ge_cases k (d i)) as [|G]; auto. exfalso.
  unfold pushed in H. rewrite (sum_cut _ _ i) in H; auto.
  - rewrite P in H. assert (sum i (fun j => if pushes (instr_of j) s then d j else 0) <= push_at sc i s); [|lia].
    apply sum_le. intros j J. destruct (pushes (instr_of j) s); auto. apply (v_len _ _ V). lia.
  - intros j J. destruct (pushes (instr_of j) s) eqn:Q; auto. destruct (d j) eqn:Z; auto.
    assert (d i = len (instr_of i)); [|lia].
    apply (v_lane _ _ V j i); try lia. apply (e_push _ E i j s); auto; lia.
Qed.

Lemma push_apart : forall i j s, i < count sc -> j < count sc -> pushes (instr_of i) s = true ->
  pushes (instr_of j) s = true -> i < j -> push_at sc i s + len (instr_of i) <= push_at sc j s.
Proof.
  intros i j s I J P Q L. unfold push_at at 2.
  assert (M : forall a b, a <= b -> forall f, sum a f <= sum b f) by (induction 1; cbn; intros; auto; specialize (IHle f); lia).
  specialize (M (S i) j L (fun j => if pushes (instr_of j) s then len (instr_of j) else 0)). cbn in M. rewrite P in M.
  unfold push_at. lia.
Qed.

(** The element of [i] that is written to a place. *)
Fixpoint buffer_element (l : nat) (os : list operand) (b x : nat) : option nat :=
  match os with
  | [] => None
  | Buf c start :: r => if (c =? b) && (start <=? x) && (x <? start + l) then Some (x - start) else buffer_element l r b x
  | Str _ :: r => buffer_element l r b x
  end.

Definition written_by (i : nat) (p : place) : option nat :=
  match p with
  | PBuf n b x => if node (instr_of i) =? n then buffer_element (len (instr_of i)) (sinks (instr_of i)) b x else None
  | PStr s x => if pushes (instr_of i) s && (push_at sc i s <=? x) && (x <? push_at sc i s + len (instr_of i))
      then Some (x - push_at sc i s) else None
  end.

Lemma in_streams : forall os s, In (Str s) os <-> mentions os s = true.
Proof.
  unfold mentions. intros os s. rewrite existsb_exists. split.
  - intros I. exists s. rewrite Nat.eqb_refl. split; auto. induction os as [|[b x|t] os IH]; cbn in *; auto.
    + destruct I as [H|]; [discriminate|auto].
    + destruct I as [H|]; [injection H; auto|auto].
  - intros (x & I & Q). apply Nat.eqb_eq in Q. subst x. induction os as [|[b x|t] os IH]; cbn in *; auto.
    destruct I as [->|]; auto.
Qed.

Lemma buffer_element_some : forall l os b x k, buffer_element l os b x = Some k ->
  k < l /\ exists start, In (Buf b start) os /\ x = start + k.
Proof.
  induction os as [|[c st|s] os IH]; cbn; intros b x k H; [discriminate| |].
  - destruct ((c =? b) && (st <=? x) && (x <? st + l)) eqn:C in H.
    + repeat (apply andb_true_iff in C as [C ?]). apply Nat.eqb_eq in C. subst c.
      repeat match goal with X : (_ <=? _) = true |- _ => apply Nat.leb_le in X | X : (_ <? _) = true |- _ => apply Nat.ltb_lt in X end.
      assert (k = x - st) by congruence. subst k. split; [lia|]. exists st. split; auto; lia.
    + destruct (IH _ _ _ H) as (L & s & I & X). split; auto. exists s; auto.
  - destruct (IH _ _ _ H) as (L & t & I & X). split; auto. exists t; auto.
Qed.

Lemma buffer_element_none : forall l os b x start k, buffer_element l os b x = None ->
  In (Buf b start) os -> k < l -> x <> start + k.
Proof.
  induction os as [|[c st|s] os IH]; cbn; intros b x start k H I L; auto.
  - destruct ((c =? b) && (st <=? x) && (x <? st + l)) eqn:C in H; [discriminate|].
    destruct I as [I|I]; [|eauto]. injection I as -> ->. rewrite Nat.eqb_refl in C. cbn in C.
    apply andb_false_iff in C as [C|C]; [apply Nat.leb_gt in C|apply Nat.ltb_ge in C]; lia.
  - destruct I as [I|I]; [discriminate|eauto].
Qed.

Lemma written_by_some : forall i p k, written_by i p = Some k ->
  k < len (instr_of i) /\ exists o, In o (sinks (instr_of i)) /\ sink_place i k o = p.
Proof.
  intros i [n b x|s x] k; cbn; intros H.
  - revert H. destruct (Nat.eqb_spec (node (instr_of i)) n) as [<-|]; [|discriminate]. intros H.
    apply buffer_element_some in H as (L & st & I & ->). split; auto. exists (Buf b st). auto.
  - destruct (pushes (instr_of i) s && (push_at sc i s <=? x) && (x <? push_at sc i s + len (instr_of i))) eqn:C; [|discriminate].
    repeat (apply andb_true_iff in C as [C ?]). repeat match goal with X : (_ <=? _) = true |- _ => apply Nat.leb_le in X | X : (_ <? _) = true |- _ => apply Nat.ltb_lt in X end.
    assert (k = x - push_at sc i s) by congruence. subst k. split; [lia|].
    exists (Str s). split; [now apply in_streams|]. cbn. f_equal. lia.
Qed.

Lemma written_by_here : forall i k o, aligned -> i < count sc -> k < len (instr_of i) -> In o (sinks (instr_of i)) ->
  written_by i (sink_place i k o) = Some k.
Proof.
  intros i k [b st|s] A K L I; cbn.
  - rewrite Nat.eqb_refl. destruct buffer_element as [m|] eqn:B.
    + apply buffer_element_some in B as (M & st' & I' & X). f_equal.
      assert (H : apart (len (instr_of i)) (Buf b st) (Buf b st')) by (apply (A i); auto; apply in_or_app; auto).
      cbn in H. specialize (H eq_refl). lia.
    + eapply buffer_element_none in B; eauto. congruence.
  - apply in_streams in I. unfold pushes. rewrite I. cbn.
    assert (push_at sc i s <=? push_at sc i s + k = true) as -> by (apply Nat.leb_le; lia).
    assert (push_at sc i s + k <? push_at sc i s + len (instr_of i) = true) as -> by (apply Nat.ltb_lt; lia).
    cbn. f_equal. lia.
Qed.

(** Memory after an instruction has run as a whole, and after a list of instructions. *)
Definition value_of (m : memory) (i k : nat) : option tree :=
  value (map (fun o => m (source_place i k o)) (sources (instr_of i))).
Definition exec (m : memory) (i : nat) : memory :=
  fun p => match written_by i p with Some k => value_of m i k | None => m p end.
Definition sequential (m0 : memory) (l : list nat) : memory := fold_left exec l m0.

Variable m0 : memory.

Fixpoint before (l : list nat) (m : memory) (i : nat) : memory :=
  match l with [] => m | j :: r => if j =? i then m else before r (exec m j) i end.

Definition V (i k : nat) : option tree := value_of (before order m0 i) i k.

Lemma before_split : forall pre m i post, ~ In i pre -> before (pre ++ i :: post) m i = fold_left exec pre m.
Proof.
  induction pre as [|j pre IH]; cbn; intros m i post N; [now rewrite Nat.eqb_refl|].
  destruct (Nat.eqb_spec j i); [intuition|auto].
Qed.

Lemma V_spec : forall pre i post k, order = pre ++ i :: post -> V i k = value_of (sequential m0 pre) i k.
Proof.
  intros pre i post k O. unfold V. destruct (order_at _ _ _ O) as (_ & N & _). rewrite O.
  now rewrite before_split.
Qed.

(** The memory after an instruction has moved [d i] elements. *)
Definition layer (d : progress) (m : memory) (i : nat) : memory :=
  fun p => match written_by i p with Some k => if k <? d i then V i k else m p | None => m p end.
Definition layers (d : progress) (m : memory) (l : list nat) : memory := fold_left (layer d) l m.

Lemma layers_skip : forall d p l m, (forall j k, In j l -> written_by j p = Some k -> d j <= k) -> layers d m l p = m p.
Proof.
  unfold layers. induction l as [|j l IH]; cbn; intros m H; auto. rewrite IH by eauto. unfold layer.
  destruct (written_by j p) as [k|] eqn:W; auto. apply H in W; auto. apply Nat.ltb_ge in W. now rewrite W.
Qed.

Lemma layers_same : forall d e p l m n, m p = n p ->
  (forall j k, In j l -> written_by j p = Some k -> (k <? d j) = (k <? e j)) -> layers d m l p = layers e n l p.
Proof.
  unfold layers. induction l as [|j l IH]; cbn; intros m n M H; auto. apply IH; eauto. unfold layer.
  destruct (written_by j p) as [k|] eqn:W; auto. now rewrite (H j k), M by auto.
Qed.

Lemma layers_full : forall d p pre post, order = pre ++ post ->
  (forall j k, In j pre -> written_by j p = Some k -> k < d j) -> layers d m0 pre p = sequential m0 pre p.
Proof.
  intros d p pre. induction pre as [|j pre IH] using rev_ind; intros post O H; auto.
  unfold layers, sequential. rewrite !fold_left_app. cbn. unfold layer at 1, exec at 1.
  rewrite <- app_assoc in O. cbn in O.
  destruct (written_by j p) as [k|] eqn:W.
  - assert (k < d j) as L by (apply H; auto; apply in_or_app; right; now left). apply Nat.ltb_lt in L. rewrite L.
    eapply V_spec; eauto.
  - eapply IH; eauto. intros; apply H; auto; apply in_or_app; auto.
Qed.

Hypothesis A : aligned.
Hypothesis RF : race_free order.

Lemma reads_at : forall i k o, k < len (instr_of i) -> In o (sources (instr_of i)) -> reads i (source_place i k o).
Proof. intros i k o; exists k, o; auto. Qed.
Lemma writes_at : forall i k o, k < len (instr_of i) -> In o (sinks (instr_of i)) -> writes i (sink_place i k o).
Proof. intros i k o; exists k, o; auto. Qed.
Lemma writes_by : forall i p k, written_by i p = Some k -> writes i p.
Proof. intros i p k H. apply written_by_some in H as (L & o & I & <-). now apply writes_at. Qed.

Lemma same_node : forall i n b x k, written_by i (PBuf n b x) = Some k -> node (instr_of i) = n.
Proof. cbn. intros i n b x k. now destruct (Nat.eqb_spec (node (instr_of i)) n). Qed.

(** An instruction that comes later in the order and clashes with [i] has not started while [i] runs. *)
Lemma later_waits : forall d pre i post j, order = pre ++ i :: post -> inv sc d -> d i < len (instr_of i) ->
  In j post -> node (instr_of i) = node (instr_of j) -> clash i j -> d j = 0.
Proof.
  intros d pre i post j O V L J N C. destruct (order_at _ _ _ O) as (K & NI & _).
  apply in_split in J as (a & b & ->).
  assert (O' : order = (pre ++ i :: a) ++ j :: b) by (rewrite O, <- app_assoc; auto).
  destruct (order_at _ _ _ O') as (KJ & NJ & _). destruct (d j) eqn:Z; auto. exfalso.
  assert (i <> j) by (intros ->; apply NJ, in_or_app; right; now left).
  destruct (Nat.eq_dec (lane (instr_of i)) (lane (instr_of j))) as [LE|LN].
  - assert (i < j \/ j < i) as [G|G] by lia.
    + assert (d i = len (instr_of i)) by (apply (v_lane _ _ V j i); auto; lia). lia.
    + destruct (order_at _ _ _ O) as (_ & _ & _ & _ & P). apply NJ, in_or_app. left. apply P; auto.
  - assert (d i = len (instr_of i)); [|lia]. eapply RF; eauto; [apply in_or_app; right; now left|lia].
Qed.

(** One that comes earlier and clashes with [i] is complete when [i] moves. *)
Lemma earlier_done : forall d pre i post j, order = pre ++ i :: post -> inv sc d -> ready sc d i 1 ->
  In j pre -> node (instr_of j) = node (instr_of i) -> clash j i -> d j = len (instr_of j).
Proof.
  intros d pre i post j O V RD J N C. destruct (order_at _ _ _ O) as (K & NI & _).
  destruct (Nat.eq_dec (lane (instr_of j)) (lane (instr_of i))) as [LE|LN].
  - assert (i <> j) by (intros ->; contradiction).
    apply in_split in J as (a & b & ->). assert (O' : order = a ++ j :: (b ++ i :: post)) by (rewrite O, <- app_assoc; auto).
    destruct (order_at _ _ _ O') as (_ & _ & _ & _ & P).
    assert (i < j \/ j < i) as [G|G] by lia; [|now apply RD].
    exfalso. apply NI, in_or_app. left. apply P; auto.
  - pose proof (inv_move _ _ _ _ V RD) as V'.
    assert (H : upd d i (d i + 1) j = len (instr_of j)); [|rewrite upd_other in H; auto; intros ->; contradiction].
    eapply RF; eauto. rewrite upd_same. lia.
Qed.

(** An instruction reads the same contents when it moves as in the run in order. *)
Lemma sources_determined : forall d pre i post, order = pre ++ i :: post -> inv sc d -> ready sc d i 1 ->
  forall o, In o (sources (instr_of i)) ->
  layers d m0 order (source_place i (d i) o) = sequential m0 pre (source_place i (d i) o).
Proof.
  intros d pre i post O W RD o I. set (k := d i).
  pose proof (r_known _ _ _ _ RD) as K. pose proof (r_left _ _ _ _ RD) as L.
  assert (C : current sc d i) by (split; [auto|split; [lia|apply RD]]).
  destruct (order_at _ _ _ O) as (_ & NI & VP & RP & _).
  assert (KP : forall j, In j pre -> j < count sc).
  { intros j J. apply in_split in J as (a & b & ->). rewrite <- app_assoc in O. apply (order_at _ _ _ O). }
  assert (KQ : forall j, In j post -> j < count sc /\ ~ In j pre).
  { intros j J. apply in_split in J as (a & b & ->). destruct (order_at (pre ++ i :: a) j b) as (KJ & N & _).
    - now rewrite O, <- app_assoc.
    - split; auto. intros P. apply N, in_or_app. now left. }
  (* A stream holds what [i] pops, now and when the instructions before [i] have run. *)
  assert (POP : forall s j q, In (Str s) (sources (instr_of i)) -> j < count sc ->
    written_by j (PStr s (pop_at sc i s + k)) = Some q -> q < d j /\ In j pre).
  { intros s j q IS KJ Q. apply in_streams in IS. pose proof (written_by_some _ _ _ Q) as (QL & o' & IO & QE).
    destruct o' as [c y|t]; cbn in QE; [discriminate|]. injection QE as -> QX. apply in_streams in IO. split.
    - eapply pushed_reaches; eauto. pose proof (r_sources _ _ _ _ RD s IS) as RS. rewrite popped_current in RS by auto.
      fold k in RS. lia.
    - assert (Z : after_all pre i = 0) by (rewrite after_all_spec; destruct in_dec; [contradiction|auto]).
      assert (q < after_all pre j).
      { eapply pushed_reaches; eauto. pose proof (r_sources _ _ _ _ RP s IS) as RS.
        rewrite popped_current in RS; auto; [lia|]. split; [auto|]. split; [lia|apply RP]. }
      rewrite after_all_spec in *. destruct (in_dec Nat.eq_dec j pre); [auto|lia]. }
  rewrite O. unfold layers. rewrite fold_left_app. cbn [fold_left].
  fold (layers d m0 pre). fold (layers d (layer d (layers d m0 pre) i) post).
  assert (SELF : forall q, written_by i (source_place i k o) = Some q -> d i <= q).
  { intros q Q. destruct o as [b x|s].
    - apply written_by_some in Q as (QL & o & IO & QE). destruct o as [c y|t]; cbn in QE; [|discriminate].
      injection QE as -> QX. assert (AP : apart (len (instr_of i)) (Buf b y) (Buf b x)) by (apply (A i); auto; apply in_or_app; auto).
      cbn in AP. specialize (AP eq_refl). fold k. lia.
    - destruct (POP s i q I K Q). contradiction. }
  assert (DONE : forall j q, In j pre -> written_by j (source_place i k o) = Some q -> q < d j).
  { intros j q J Q. destruct o as [b x|s]; [|exact (proj1 (POP s j q I (KP j J) Q))].
    rewrite (earlier_done d pre i post j); auto; [exact (proj1 (written_by_some _ _ _ Q))|exact (same_node _ _ _ _ _ Q)|].
    exists (source_place i k (Buf b x)). split; [exact Logic.I|]. left. split; [eapply writes_by; eauto|].
    left. apply reads_at; auto. fold k in L. lia. }
  rewrite layers_skip.
  - unfold layer at 1. destruct (written_by i (source_place i k o)) as [q|] eqn:Q.
    + specialize (SELF q eq_refl). apply Nat.ltb_ge in SELF. rewrite SELF. eapply layers_full; eauto.
    + eapply layers_full; eauto.
  - intros j q J Q. destruct (KQ j J) as [KJ NJ]. destruct o as [b x|s].
    + rewrite (later_waits d pre i post j); auto; [lia|lia|symmetry; exact (same_node _ _ _ _ _ Q)|].
      exists (source_place i k (Buf b x)). split; [exact Logic.I|]. right. split; [|eapply writes_by; eauto].
      apply reads_at; auto. fold k in L. lia.
    + destruct (POP s j q I KJ Q) as [_ P]. contradiction.
Qed.

Lemma read_static : forall d i o, inv sc d -> ready sc d i 1 -> In o (sources (instr_of i)) ->
  read_place sc d i o = source_place i (d i) o.
Proof.
  intros d i [b x|s] W RD I; cbn; auto. rewrite popped_current; auto; [|now apply in_streams].
  split; [apply RD|]. split; [|apply RD]. pose proof (r_left _ _ _ _ RD). lia.
Qed.

Theorem memory_determined : forall st, reach sc m0 st -> forall p, mem st p = layers (done st) m0 order p.
Proof.
  induction 1 as [|st st' H IH [i RD]]; intros p.
  { cbn. symmetry. apply layers_skip. lia. }
  pose proof (reach_inv _ _ _ H) as W. set (d := done st) in *. set (k := d i).
  pose proof (r_known _ _ _ _ RD) as K. pose proof (r_left _ _ _ _ RD) as L.
  assert (C : current sc d i) by (split; [auto|split; [lia|apply RD]]).
  destruct (in_split _ _ (in_order i K)) as (pre & post & O).
  assert (KQ : forall j, In j post -> j < count sc).
  { intros j J. apply in_split in J as (a & b & ->). apply (order_at (pre ++ i :: a) j b). now rewrite O, <- app_assoc. }
  assert (WPL : forall o, In o (sinks (instr_of i)) -> write_place sc d i o = sink_place i k o).
  { intros [b x|s] I; cbn; auto. rewrite (pushed_current sc d i); auto. now apply in_streams. }
  assert (VAL : value (map (fun o => mem st (read_place sc d i o)) (sources (instr_of i))) = V i k).
  { rewrite (V_spec _ _ _ _ O). unfold value_of. f_equal. apply map_ext_in. intros o I.
    rewrite read_static, IH by auto. now apply (sources_determined d pre i post). }
  cbn [move mem done]. fold d. rewrite VAL. fold k. unfold written.
  assert (WR : forall q, written_by i p = Some q -> q = k -> In p (map (write_place sc d i) (sinks (instr_of i)))).
  { intros q Q ->. apply written_by_some in Q as (_ & o & IO & <-). rewrite <- WPL by auto. now apply in_map. }
  destruct (in_dec place_eq_dec p (map (write_place sc d i) (sinks (instr_of i)))) as [IN|OUT].
  - apply in_map_iff in IN as (o & OE & IO). rewrite WPL in OE by auto.
    assert (WB : written_by i p = Some k) by (subst p; apply written_by_here; auto; fold k in L; lia).
    rewrite O. unfold layers. rewrite fold_left_app. cbn [fold_left].
    change (V i k = layers (upd d i (S k)) (layer (upd d i (S k)) (layers (upd d i (S k)) m0 pre) i) post p).
    rewrite layers_skip.
    + unfold layer at 1. rewrite WB, upd_same. now replace (k <? S k) with true by (symmetry; apply Nat.ltb_lt; lia).
    + intros j q J Q. assert (j <> i) by (intros ->; eapply order_twice; eauto). rewrite upd_other by auto.
      destruct p as [n b x|s x].
      * rewrite (later_waits d pre i post j); auto; [lia|lia| |].
        -- apply same_node in Q, WB. congruence.
        -- exists (PBuf n b x). split; [exact Logic.I|]. left. split; [|right]; eapply writes_by; eauto.
      * exfalso. pose proof (written_by_some _ _ _ Q) as (QL & o' & IO' & QE).
        destruct o' as [c y|t]; cbn in QE; [discriminate|]. injection QE as -> QX.
        destruct o as [c y|t]; cbn in OE; [discriminate|]. injection OE as -> OX. apply in_streams in IO, IO'.
        pose proof (KQ j J). assert (i < j \/ j < i) as [G|G] by lia.
        -- pose proof (push_apart i j s K ltac:(auto) IO IO' G). fold k in L. lia.
        -- pose proof (push_apart j i s ltac:(auto) K IO' IO G). fold k in L. lia.
  - rewrite IH. apply layers_same; auto. intros j q J Q. unfold upd. destruct (Nat.eqb_spec j i) as [->|]; auto.
    assert (q <> k) by (intros X; apply OUT; eapply WR; eauto). fold k.
    destruct (Nat.ltb_spec q k), (Nat.ltb_spec q (S k)); auto; lia.
Qed.

(** If the run in order reads only places that have been written, so does every execution. *)
Theorem reads_defined :
  (forall pre i post k o, order = pre ++ i :: post -> k < len (instr_of i) -> In o (sources (instr_of i)) ->
    sequential m0 pre (source_place i k o) <> None) ->
  forall st i o, reach sc m0 st -> ready sc (done st) i 1 -> In o (sources (instr_of i)) ->
    mem st (read_place sc (done st) i o) <> None.
Proof.
  intros D st i o H RD I. pose proof (reach_inv _ _ _ H) as W. pose proof (r_left _ _ _ _ RD).
  destruct (in_split _ _ (in_order i (r_known _ _ _ _ RD))) as (pre & post & O).
  rewrite read_static, (memory_determined st H), (sources_determined _ pre i post) by auto.
  apply (D pre i post); auto. lia.
Qed.

(** Every execution that ends leaves the memory of the run in order. *)
Theorem final_memory : forall st, reach sc m0 st -> final sc st -> forall p, mem st p = sequential m0 order p.
Proof.
  intros st H F p. rewrite (memory_determined st H). apply (layers_full _ _ order []); [now rewrite app_nil_r|].
  intros j k J W. rewrite F; [exact (proj1 (written_by_some _ _ _ W))|].
  apply in_split in J as (a & b & O). apply (order_at a j b O).
Qed.

End Order.
End Determined.
