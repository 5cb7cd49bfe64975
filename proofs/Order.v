(** A schedule whose instructions can run one after the other, each as a whole, in some order can never be stuck: in
    every state that any interleaving of single elements reaches, some instruction can move all of its remaining
    elements, or any part of them. So no execution is stuck, at any granularity of transfers. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model.

Lemma upd_same : forall A (f : nat -> A) i v, upd f i v i = v.
Proof. intros; unfold upd; now rewrite Nat.eqb_refl. Qed.

Lemma upd_other : forall A (f : nat -> A) i j v, j <> i -> upd f i v j = f j.
Proof. intros; unfold upd. now destruct (Nat.eqb_spec j i). Qed.

Lemma sum_le : forall n f g, (forall i, i < n -> f i <= g i) -> sum n f <= sum n g.
Proof. induction n; cbn; intros f g H; [lia|]. specialize (IHn f g). pose proof (H n). apply Nat.add_le_mono; auto. Qed.

Lemma sum_ext : forall n f g, (forall i, i < n -> f i = g i) -> sum n f = sum n g.
Proof. induction n; cbn; intros f g H; auto. now rewrite (IHn f g), (H n) by auto. Qed.

Lemma sum_zero : forall n f, (forall i, i < n -> f i = 0) -> sum n f = 0.
Proof. induction n; cbn; intros f H; auto. now rewrite (IHn f), (H n) by auto. Qed.

(** A sum whose terms vanish beyond the term [i]. *)
Lemma sum_cut : forall n f i, i < n -> (forall j, i < j < n -> f j = 0) -> sum n f = sum i f + f i.
Proof.
  induction n; cbn; intros f i H Z; [lia|]. destruct (Nat.eq_dec i n) as [->|N]; auto.
  rewrite (IHn f i), (Z n) by (auto with arith; lia || intros; apply Z; lia). lia.
Qed.

(** The sum after one term has grown. *)
Lemma sum_grow : forall n f g i c, i < n -> g i = f i + c -> (forall j, j <> i -> g j = f j) -> sum n g = sum n f + c.
Proof.
  induction n; cbn; intros f g i c H G E; [lia|]. destruct (Nat.eq_dec i n) as [->|N].
  - rewrite G, (sum_ext n g f) by (intros; apply E; lia). lia.
  - rewrite (IHn f g i c), (E n) by (auto; lia). lia.
Qed.

Section Order.
Variable sc : schedule.
Notation instr_of := (ins sc).
Notation pushed := (pushed sc).
Notation popped := (popped sc).

(** One lane pushes to a stream, one lane of a node pops from it, at the ends that are declared. *)
Record ends : Prop := {
  e_push : forall i j s, i < count sc -> j < count sc -> pushes (instr_of i) s = true -> pushes (instr_of j) s = true ->
    lane (instr_of i) = lane (instr_of j);
  e_pop : forall i j s, i < count sc -> j < count sc -> pops (instr_of i) s = true -> pops (instr_of j) s = true ->
    node (instr_of i) = node (instr_of j) -> lane (instr_of i) = lane (instr_of j) }.

(** The invariant of all executions. *)
Record inv (d : progress) : Prop := {
  v_len : forall i, i < count sc -> d i <= len (instr_of i);
  v_lane : forall i j, i < count sc -> j < i -> lane (instr_of j) = lane (instr_of i) -> 0 < d i -> d j = len (instr_of j);
  v_after : forall i j, i < count sc -> In j (after (instr_of i)) -> 0 < d i -> d j = len (instr_of j);
  v_pop : forall i s, i < count sc -> pops (instr_of i) s = true -> popped d s (node (instr_of i)) <= pushed d s }.

Lemma inv_start : inv (fun _ => 0).
Proof.
  constructor; intros; try lia. unfold Model.popped, Model.pushed.
  rewrite !sum_zero; auto; intros; match goal with |- context [if ?b then _ else _] => now destruct b end.
Qed.

Lemma pushed_move : forall d i c s, i < count sc ->
  pushed (upd d i (d i + c)) s = pushed d s + if pushes (instr_of i) s then c else 0.
Proof.
  intros. unfold Model.pushed. eapply (sum_grow _ _ _ i); auto.
  - rewrite upd_same. now destruct pushes; lia.
  - intros j N. now rewrite upd_other.
Qed.

Lemma popped_move : forall d i c s n, i < count sc ->
  popped (upd d i (d i + c)) s n = popped d s n + if pops (instr_of i) s && (node (instr_of i) =? n) then c else 0.
Proof.
  intros. unfold Model.popped. eapply (sum_grow _ _ _ i); auto.
  - rewrite upd_same. now destruct (_ && _); lia.
  - intros j N. now rewrite upd_other.
Qed.

Lemma inv_move : forall d i c, inv d -> ready sc d i c -> inv (upd d i (d i + c)).
Proof.
  intros d i c [L LN A P] [K F RL RA RS RR]. constructor.
  - intros j J. destruct (Nat.eq_dec j i) as [->|N]; [rewrite upd_same|rewrite upd_other]; auto.
  - intros x y X Y E Z. assert (y <> i \/ y = i) as [N| ->] by lia.
    + rewrite (upd_other _ _ i y) by auto. destruct (Nat.eq_dec x i) as [->|M]; [auto|].
      rewrite upd_other in Z by auto. eauto.
    + rewrite upd_same. rewrite upd_other in Z by lia. pose proof (LN x i X Y E Z). lia.
  - intros x y X Y Z. assert (D : d y = len (instr_of y)).
    { destruct (Nat.eq_dec x i) as [->|M]; [now apply RA|]. rewrite upd_other in Z by auto. eauto. }
    destruct (Nat.eq_dec y i) as [->|N]; [rewrite upd_same|now rewrite upd_other]. lia.
  - intros x s X Y. rewrite pushed_move, popped_move by auto.
    destruct (pops (instr_of i) s && (node (instr_of i) =? node (instr_of x))) eqn:E.
    + apply andb_true_iff in E as [E N]. apply Nat.eqb_eq in N. rewrite <- N. specialize (RS s E). lia.
    + specialize (P x s X Y). lia.
Qed.

Lemma reach_inv : forall m0 st, reach sc m0 st -> inv (done st).
Proof.
  induction 1 as [|st st' _ I [i R]]; [apply inv_start|]. cbn. rewrite <- Nat.add_1_r. now apply inv_move.
Qed.

(** The position in a stream of the first element that an instruction pushes or pops. *)
Definition push_at (i s : nat) : nat := sum i (fun j => if pushes (instr_of j) s then len (instr_of j) else 0).
Definition pop_at (i s : nat) : nat :=
  sum i (fun j => if pops (instr_of j) s && (node (instr_of j) =? node (instr_of i)) then len (instr_of j) else 0).

(** Instruction [i] may run: those before it in its lane are complete, and it is not complete. *)
Definition current (d : progress) (i : nat) : Prop :=
  i < count sc /\ d i < len (instr_of i) /\
  forall j, j < i -> lane (instr_of j) = lane (instr_of i) -> d j = len (instr_of j).

Lemma later_zero : forall d i j, inv d -> current d i -> i < j < count sc -> lane (instr_of j) = lane (instr_of i) -> d j = 0.
Proof.
  intros d i j V (K & F & _) J E. destruct (d j) eqn:Z; auto.
  assert (d i = len (instr_of i)) by (eapply v_lane with (i := j); eauto; lia). lia.
Qed.

Lemma pushed_current : forall d i s, ends -> inv d -> current d i -> pushes (instr_of i) s = true ->
  pushed d s = push_at i s + d i.
Proof.
  intros d i s E V C P. destruct C as (K & F & L). unfold Model.pushed, push_at. rewrite (sum_cut _ _ i).
  - rewrite P. f_equal. apply sum_ext. intros j J. destruct (pushes (instr_of j) s) eqn:Q; auto.
    apply L; auto. eapply e_push; eauto; lia.
  - auto.
  - intros j J. destruct (pushes (instr_of j) s) eqn:Q; auto.
    eapply later_zero; eauto; [repeat split; eauto|eapply e_push; eauto; lia].
Qed.

Lemma popped_current : forall d i s, ends -> inv d -> current d i -> pops (instr_of i) s = true ->
  popped d s (node (instr_of i)) = pop_at i s + d i.
Proof.
  intros d i s E V C P. destruct C as (K & F & L). unfold Model.popped, pop_at.
  rewrite (sum_cut _ _ i).
  - rewrite P, Nat.eqb_refl. cbn. f_equal. apply sum_ext. intros j J.
    destruct (pops (instr_of j) s) eqn:Q; auto. destruct (Nat.eqb_spec (node (instr_of j)) (node (instr_of i))); auto.
    cbn. apply L; auto. eapply e_pop; eauto; lia.
  - auto.
  - intros j J. destruct (pops (instr_of j) s) eqn:Q; auto.
    destruct (Nat.eqb_spec (node (instr_of j)) (node (instr_of i))); auto.
    cbn. eapply later_zero; eauto; [repeat split; eauto|eapply e_pop; eauto; lia].
Qed.

Lemma pushed_le : forall d e s, (forall i, i < count sc -> d i <= e i) -> pushed d s <= pushed e s.
Proof. intros. apply sum_le. intros. destruct pushes; auto. Qed.

Lemma popped_le : forall d e s n, (forall i, i < count sc -> d i <= e i) -> popped d s n <= popped e s n.
Proof. intros. apply sum_le. intros. destruct (_ && _); auto. Qed.

(** The instructions of [order] can run as a whole, one after the other, from the progress [d] to the end. *)
Fixpoint runs (d : progress) (order : list nat) : Prop :=
  match order with
  | [] => forall i, i < count sc -> d i = len (instr_of i)
  | i :: rest => d i = 0 /\ ready sc d i (len (instr_of i)) /\ runs (upd d i (len (instr_of i))) rest
  end.

Lemma zero_add : forall d (i c : nat), d i = 0 -> upd d i c = upd d i (d i + c).
Proof. intros d i c Z. now rewrite Z. Qed.

Lemma runs_progress : forall order d e, ends -> inv d -> inv e -> (forall i, i < count sc -> d i <= e i) ->
  (forall i, i < count sc -> d i = 0 \/ d i = len (instr_of i)) -> runs d order ->
  (forall i, i < count sc -> e i = len (instr_of i)) \/
  exists i, current e i /\ forall c, e i + c <= len (instr_of i) -> ready sc e i c.
Proof.
  induction order as [|i rest IH]; intros d e E D V LE W; cbn.
  - intros F. left. intros i K. specialize (F i K); specialize (LE i K). pose proof (v_len e V i K). lia.
  - intros (Z & R & N). pose proof (r_known _ _ _ _ R) as K.
    destruct (Nat.eq_dec (e i) (len (instr_of i))) as [C|C].
    + apply (IH (upd d i (len (instr_of i)))); auto.
      * rewrite zero_add by auto. now apply inv_move.
      * intros j J. destruct (Nat.eq_dec j i) as [->|M]; [rewrite upd_same; lia|rewrite upd_other; auto].
      * intros j J. destruct (Nat.eq_dec j i) as [->|M]; [rewrite upd_same; auto|rewrite upd_other; auto].
    + right. exists i. pose proof (v_len e V i K) as B.
      assert (CE : current e i).
      { repeat split; auto; [lia|]. intros j J L. pose proof (r_lane _ _ _ _ R j J L). specialize (LE j).
        pose proof (v_len e V j). assert (j < count sc) by lia. intuition lia. }
      assert (CD : current d i).
      { repeat split; auto; [lia|]. apply (r_lane _ _ _ _ R). }
      split; auto. intros c F. constructor; auto.
      * apply CE.
      * intros j J. destruct (r_after _ _ _ _ R j J) as [KJ DJ]. specialize (LE j KJ). pose proof (v_len e V j KJ).
        split; auto; lia.
      * intros s P. rewrite popped_current by auto. pose proof (r_sources _ _ _ _ R s P) as Q.
        rewrite popped_current in Q by auto. pose proof (pushed_le d e s LE). lia.
      * intros s n cap P RN RC. rewrite (pushed_current e i) by auto. pose proof (r_room _ _ _ _ R s n cap P RN RC) as Q.
        rewrite (pushed_current d i) in Q by auto. pose proof (popped_le d e s n LE). lia.
Qed.

(** No reachable state is stuck, at any granularity: it is final, or some instruction can move any number of the
    elements that it has left, one or all of them. *)
Theorem no_deadlock : forall order m0 st, ends -> runs (fun _ => 0) order -> reach sc m0 st ->
  final sc st \/
  exists i, i < count sc /\ done st i < len (instr_of i) /\
    forall c, done st i + c <= len (instr_of i) -> ready sc (done st) i c.
Proof.
  intros order m0 st E R H. pose proof (reach_inv _ _ H) as V.
  destruct (runs_progress order (fun _ => 0) (done st) E inv_start V) as [F|(i & (K & L & _) & A)]; auto; try lia.
  right. exists i. auto.
Qed.

(** Executions end: an execution of [n] steps has moved [n] elements, of which there are as many as in all
    instructions. *)
Inductive reach_in (m0 : memory) : nat -> state -> Prop :=
  | in_start : reach_in m0 0 {| done := fun _ => 0; mem := m0 |}
  | in_step : forall n st st', reach_in m0 n st -> step sc st st' -> reach_in m0 (S n) st'.

Theorem executions_end : forall m0 n st, reach_in m0 n st -> n <= sum (count sc) (fun i => len (instr_of i)).
Proof.
  assert (T : forall m0 n st, reach_in m0 n st -> reach sc m0 st /\ sum (count sc) (done st) = n).
  { induction 1 as [|n st st' H [RH E] ST]; [split; [constructor|now apply sum_zero]|].
    split; [econstructor; eauto|]. destruct ST as [i R]. cbn.
    erewrite (sum_grow _ (done st) _ i 1); [lia|apply (r_known _ _ _ _ R)| |].
    - rewrite upd_same; lia.
    - intros. now rewrite upd_other. }
  intros m0 n st H. destruct (T _ _ _ H) as [RH <-]. apply sum_le. intros.
  now apply (v_len _ (reach_inv _ _ RH)).
Qed.

End Order.
