(** A checker of the form of a schedule and of an order in which it can run, with the proof that a schedule whose order
    is accepted never deadlocks. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model Order Determined Maps.

(** Hints that the reader of a schedule computes to make the check fast. A wrong hint is refused, so none is trusted.
    The lane that pushes to each stream, and the lane that pops each stream at each node; the position in a stream of the
    first element that an instruction pushes or pops; whether a node has several lanes, and the lane of one that has not. *)
Record hints := {
  push_lane : nat -> nat; pop_lane : nat -> nat -> nat;
  push_pos : nat -> nat -> nat; pop_pos : nat -> nat -> nat;
  shared : nat -> bool; only_lane : nat -> nat }.

Section Check.
Variable sc : schedule.
Variable h : hints.
Notation instr_of := (ins sc).

Definition form_ok (i : nat) : bool :=
  let x := instr_of i in
  (0 <? len x) && distinct (streams_of (sources x)) && distinct (streams_of (sinks x)) &&
  forallb (fun s => (lane x =? push_lane h s) && (node x =? origin (streams sc s))) (streams_of (sinks x)) &&
  forallb (fun s => (lane x =? pop_lane h s (node x)) && existsb (Nat.eqb (node x)) (readers (streams sc s)))
    (streams_of (sources x)) &&
  (shared h (node x) || (lane x =? only_lane h (node x))) &&
  match i with 0 => true | S j => (lane (instr_of j) <=? lane x) end.

Record counters := { finished : map bool; pu : map nat; po : map (map nat) }.

Definition start : counters := {| finished := empty; pu := empty; po := empty |}.

Definition can_run (c : counters) (i : nat) : bool :=
  let x := instr_of i in let l := len x in
  (i <? count sc) && negb (get false (finished c) i) &&
  match i with 0 => true | S j => negb (lane (instr_of j) =? lane x) || get false (finished c) j end &&
  forallb (fun j => (j <? count sc) && get false (finished c) j) (after x) &&
  forallb (fun s => let at_ := get 0 (get empty (po c) s) (node x) in
    (at_ + l <=? get 0 (pu c) s) && (at_ =? pop_pos h i s)) (streams_of (sources x)) &&
  forallb (fun s => (get 0 (pu c) s =? push_pos h i s) && match capacity (streams sc s) with
    | None => true
    | Some cap => forallb (fun n => get 0 (pu c) s + l <=? get 0 (get empty (po c) s) n + cap) (readers (streams sc s))
    end) (streams_of (sinks x)).

Definition pop_all (l n : nat) (ss : list nat) (m : map (map nat)) : map (map nat) :=
  fold_left (fun m s => let at_ := get empty m s in set m s (set at_ n (get 0 at_ n + l))) ss m.

Definition ran (c : counters) (i : nat) : counters :=
  let x := instr_of i in
  {| finished := set (finished c) i true; pu := add_all (len x) (streams_of (sinks x)) (pu c);
     po := pop_all (len x) (node x) (streams_of (sources x)) (po c) |}.

Fixpoint run_order (c : counters) (order : list nat) : option counters :=
  match order with [] => Some c | i :: r => if can_run c i then run_order (ran c i) r else None end.

(** Every stream passes the same number of elements at all its ends, so no element is left in it. *)
Definition all_passed (c : counters) (s : nat) : bool :=
  forallb (fun n => get 0 (get empty (po c) s) n =? get 0 (pu c) s) (readers (streams sc s)).

(** The checker: the schedule of [nstreams] streams is well-formed and runs to the end in this order. *)
Definition check_order (nstreams : nat) (order : list nat) : bool :=
  all_below (count sc) form_ok &&
  match run_order start order with
  | None => false
  | Some c => all_below (count sc) (get false (finished c)) && all_below nstreams (all_passed c)
  end.

Lemma get_pop_all : forall l n ss m s k, NoDup ss ->
  get 0 (get empty (pop_all l n ss m) s) k =
  get 0 (get empty m s) k + if existsb (Nat.eqb s) ss && (n =? k) then l else 0.
Proof.
  unfold pop_all. induction ss as [|x ss IH]; cbn; intros m s k N; [lia|]. inversion N as [|? ? F N']; subst.
  rewrite IH, get_set by auto. destruct (Nat.eqb_spec s x) as [->|M]; cbn; auto.
  assert (existsb (Nat.eqb x) ss = false) as ->.
  { apply not_true_iff_false. intros E. apply existsb_exists in E as (y & I & Q). apply Nat.eqb_eq in Q. now subst. }
  cbn. rewrite get_set, (Nat.eqb_sym k n). destruct (Nat.eqb_spec n k); subst; lia.
Qed.

Lemma in_mentions : forall os s, mentions os s = true <-> In s (streams_of os).
Proof.
  unfold mentions. intros. rewrite existsb_exists. split.
  - intros (x & I & E). apply Nat.eqb_eq in E. now subst.
  - intros I. exists s. now rewrite Nat.eqb_refl.
Qed.

Section Sound.
Hypothesis form : forall i, i < count sc -> form_ok i = true.

Lemma form_fields : forall i, i < count sc ->
  0 < len (instr_of i) /\ NoDup (streams_of (sources (instr_of i))) /\ NoDup (streams_of (sinks (instr_of i))) /\
  (forall s, pushes (instr_of i) s = true -> lane (instr_of i) = push_lane h s) /\
  (forall s, pops (instr_of i) s = true -> lane (instr_of i) = pop_lane h s (node (instr_of i))) /\
  (forall j, S j = i -> lane (instr_of j) <= lane (instr_of i)) /\
  (shared h (node (instr_of i)) = true \/ lane (instr_of i) = only_lane h (node (instr_of i))).
Proof.
  intros i K. specialize (form i K). unfold form_ok in form.
  repeat (apply andb_true_iff in form as [form ?]).
  match goal with H : distinct (streams_of (sinks _)) = true |- _ => apply distinct_nodup in H end.
  match goal with H : distinct (streams_of (sources _)) = true |- _ => apply distinct_nodup in H end.
  apply Nat.ltb_lt in form. rewrite forallb_forall in *. repeat split; auto.
  - intros s P. apply in_mentions in P.
    match goal with H : forall x, In x (streams_of (sinks _)) -> _ |- _ => specialize (H s P); apply andb_true_iff in H as [H _] end.
    now apply Nat.eqb_eq.
  - intros s P. apply in_mentions in P.
    match goal with H : forall x, In x (streams_of (sources _)) -> _ |- _ => specialize (H s P); apply andb_true_iff in H as [H _] end.
    now apply Nat.eqb_eq.
  - intros j <-. now apply Nat.leb_le.
  - match goal with X : (shared _ _ || _)%bool = true |- _ => apply orb_true_iff in X as [X|X] end; auto.
    right. now apply Nat.eqb_eq.
Qed.

Lemma form_ends : ends sc.
Proof.
  constructor.
  - intros i j s I J P Q. rewrite (proj1 (proj2 (proj2 (proj2 (form_fields i I)))) s P).
    now rewrite (proj1 (proj2 (proj2 (proj2 (form_fields j J)))) s Q).
  - intros i j s I J P Q N. rewrite (proj1 (proj2 (proj2 (proj2 (proj2 (form_fields i I))))) s P).
    rewrite N. now rewrite (proj1 (proj2 (proj2 (proj2 (proj2 (form_fields j J))))) s Q).
Qed.

Lemma lanes_ascend : forall i j, i < count sc -> j <= i -> lane (instr_of j) <= lane (instr_of i).
Proof.
  induction i; intros j K J; [now replace j with 0 by lia|].
  destruct (Nat.eq_dec j (S i)) as [->|]; auto. transitivity (lane (instr_of i)); [apply IHi; lia|].
  now apply (form_fields (S i) K).
Qed.

(** The counters agree with the progress. *)
Record agrees (c : counters) (d : progress) : Prop := {
  a_done : forall i, d i = if get false (finished c) i then len (instr_of i) else 0;
  a_pushed : forall s, get 0 (pu c) s = pushed sc d s;
  a_popped : forall s n, get 0 (get empty (po c) s) n = popped sc d s n }.

Lemma agrees_start : agrees start (fun _ => 0).
Proof.
  constructor; cbn; intros; rewrite ?get_empty; auto; unfold pushed, popped; rewrite sum_zero; auto;
    intros; match goal with |- context [if ?b then _ else _] => now destruct b end.
Qed.

Lemma can_run_ready : forall c d i, agrees c d -> inv sc d -> can_run c i = true ->
  d i = 0 /\ ready sc d i (len (instr_of i)).
Proof.
  intros c d i [AD AP AO] V H. unfold can_run in H. repeat (apply andb_true_iff in H as [H ?]).
  apply Nat.ltb_lt in H. rewrite forallb_forall in *.
  match goal with X : negb (get _ _ _) = true |- _ => apply negb_true_iff in X; rename X into NF end.
  assert (Z : d i = 0) by now rewrite AD, NF. split; auto. constructor; auto.
  - lia.
  - intros j J E. destruct i as [|p]; [lia|].
    assert (lane (instr_of p) = lane (instr_of (S p))) as PL.
    { pose proof (lanes_ascend p j). pose proof (lanes_ascend (S p) p). lia. }
    match goal with X : (_ || get _ _ p)%bool = true |- _ => rewrite PL, Nat.eqb_refl in X; cbn in X; rename X into FP end.
    assert (DP : d p = len (instr_of p)) by now rewrite AD, FP.
    destruct (Nat.eq_dec j p) as [->|]; auto. apply (v_lane _ _ V p j); try lia.
    rewrite DP. apply form_fields. lia.
  - intros j J. match goal with X : forall x, In x (after _) -> _ |- _ => specialize (X j J); apply andb_true_iff in X as [X F] end.
    split; [now apply Nat.ltb_lt|]. now rewrite AD, F.
  - intros s P. apply in_mentions in P. rewrite <- AP, <- AO. apply Nat.leb_le.
    match goal with X : forall x, In x (streams_of (sources _)) -> _ |- _ =>
      specialize (X s P); cbn in X; now apply andb_true_iff in X as [X _] end.
  - intros s n cap P RN RC. apply in_mentions in P. rewrite <- AP, <- AO. apply Nat.leb_le.
    match goal with X : forall x, In x (streams_of (sinks _)) -> _ |- _ => specialize (X s P); apply andb_true_iff in X as [_ X]; rewrite RC in X end.
    match goal with X : forallb _ _ = true |- _ => rewrite forallb_forall in X; now apply X end.
Qed.

Lemma can_run_positions : forall c d i, agrees c d -> inv sc d -> can_run c i = true ->
  (forall s, pushes (instr_of i) s = true -> push_pos h i s = push_at sc i s) /\
  (forall s, pops (instr_of i) s = true -> pop_pos h i s = pop_at sc i s).
Proof.
  intros c d i A V C. destruct (can_run_ready c d i A V C) as [Z R]. pose proof (r_known _ _ _ _ R) as K.
  assert (CU : current sc d i).
  { split; [auto|]. split; [|apply R]. pose proof (proj1 (form_fields i K)). lia. }
  destruct A as [AD AP AO]. unfold can_run in C. repeat (apply andb_true_iff in C as [C ?]).
  rewrite forallb_forall in *. split; intros s P; pose proof P as I; apply in_mentions in I.
  - match goal with X : forall x, In x (streams_of (sinks _)) -> _ |- _ => specialize (X s I); apply andb_true_iff in X as [X _] end.
    match goal with X : (_ =? push_pos _ _ _) = true |- _ => apply Nat.eqb_eq in X; rewrite <- X end.
    rewrite AP, (pushed_current sc d i s form_ends V CU P). lia.
  - match goal with X : forall x, In x (streams_of (sources _)) -> _ |- _ => specialize (X s I); cbn in X; apply andb_true_iff in X as [_ X] end.
    match goal with X : (_ =? pop_pos _ _ _) = true |- _ => apply Nat.eqb_eq in X; rewrite <- X end.
    rewrite AO, (popped_current sc d i s form_ends V CU P). lia.
Qed.

Lemma agrees_ran : forall c d i, i < count sc -> d i = 0 -> agrees c d -> agrees (ran c i) (upd d i (len (instr_of i))).
Proof.
  intros c d i K Z [AD AP AO]. destruct (form_fields i K) as (L & NS & NK & _). constructor; cbn.
  - intros j. rewrite get_set. unfold upd. destruct (Nat.eqb_spec j i) as [->|]; auto.
  - intros s. rewrite zero_add, pushed_move, get_add_all, AP by auto. reflexivity.
  - intros s n. rewrite zero_add, popped_move, get_pop_all, AO by auto. reflexivity.
Qed.

Lemma run_order_runs : forall order c d c', agrees c d -> inv sc d -> run_order c order = Some c' ->
  (forall i, i < count sc -> get false (finished c') i = true) -> runs sc d order.
Proof.
  induction order as [|i r IH]; cbn; intros c d c' A V R F.
  - injection R as ->. intros i K. now rewrite (a_done _ _ A), F.
  - destruct (can_run c i) eqn:C; [|discriminate]. destruct (can_run_ready _ _ _ A V C) as [Z RD].
    split; auto. split; auto. pose proof (r_known _ _ _ _ RD). eapply IH; eauto.
    + now apply agrees_ran.
    + rewrite zero_add by auto. now apply inv_move.
Qed.

Lemma run_order_positions : forall order c d c', agrees c d -> inv sc d -> run_order c order = Some c' ->
  forall i, In i order ->
  (forall s, pushes (instr_of i) s = true -> push_pos h i s = push_at sc i s) /\
  (forall s, pops (instr_of i) s = true -> pop_pos h i s = pop_at sc i s).
Proof.
  induction order as [|j r IH]; cbn; intros c d c' A V R i I; [contradiction|].
  destruct (can_run c j) eqn:C; [|discriminate]. destruct I as [->|I]; [eapply can_run_positions; eauto|].
  destruct (can_run_ready _ _ _ A V C) as [Z RD]. pose proof (r_known _ _ _ _ RD).
  eapply (IH (ran c j) (upd d j (len (instr_of j)))); eauto.
  - now apply agrees_ran.
  - rewrite zero_add by auto. now apply inv_move.
Qed.

End Sound.

Definition positions : Prop := forall i, i < count sc ->
  (forall s, pushes (instr_of i) s = true -> push_pos h i s = push_at sc i s) /\
  (forall s, pops (instr_of i) s = true -> pop_pos h i s = pop_at sc i s).

Theorem check_order_form : forall n order, check_order n order = true -> forall i, i < count sc -> form_ok i = true.
Proof.
  unfold check_order. intros n order H. apply andb_true_iff in H as [W _]. exact (all_below_spec _ _ W).
Qed.

Theorem check_order_sound : forall n order, check_order n order = true -> ends sc /\ runs sc (fun _ => 0) order.
Proof.
  unfold check_order. intros n order H. apply andb_true_iff in H as [W H].
  pose proof (all_below_spec _ _ W) as F. split; [now apply form_ends|].
  destruct (run_order start order) as [c|] eqn:R; [|discriminate]. apply andb_true_iff in H as [D _].
  eapply run_order_runs; eauto; [apply agrees_start|apply inv_start|]. now apply all_below_spec.
Qed.

Theorem check_order_positions : forall n order, check_order n order = true -> positions.
Proof.
  intros n order H i K. pose proof (check_order_form _ _ H) as F. destruct (check_order_sound _ _ H) as [E R].
  unfold check_order in H. apply andb_true_iff in H as [_ H].
  destruct (run_order start order) as [c|] eqn:RO; [|discriminate].
  eapply run_order_positions; eauto; [apply agrees_start|apply inv_start|].
  destruct (Determined.runs_complete sc order _ R i K) as [Z|]; auto.
  pose proof (proj1 (form_fields F i K)). lia.
Qed.

(** A schedule whose order is accepted: no reachable state is stuck, at any granularity. *)
Theorem accepted_never_stuck : forall n order m0 st, check_order n order = true -> reach sc m0 st ->
  final sc st \/
  exists i, i < count sc /\ done st i < len (instr_of i) /\
    forall c, done st i + c <= len (instr_of i) -> ready sc (done st) i c.
Proof. intros n order m0 st H. destruct (check_order_sound _ _ H). now apply no_deadlock with order. Qed.

End Check.
