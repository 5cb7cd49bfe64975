(** The reduction along a chain of crates/algorithms/src/catalog/pipelined_chain.rs, for every number of ranks, every root
    and every list of segments. The root takes the first place, so the operator must commute unless that is rank 0. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Unisono Require Import Model Order Determined Collective Checker Dataflow Ring Tree.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments Nat.eqb : simpl never.
#[local] Arguments Nat.div : simpl never.
#[local] Arguments Nat.modulo : simpl never.

Section Chain.
(** [P] ranks, of which [top] gets the result; [T] segments, of which number [j] is from element [start j] on. *)
Variables P top T : nat.
Variable start : nat -> nat.
Notation virtual := (virtual P top).
Notation real := (real P top).
Notation L := (L start).

Definition chain_instr (i : nat) : instr :=
  let r := i / T in let j := i mod T in let v := virtual r in
  {| node := r; lane := r; len := L j;
     sources := Buf 0 (start j) :: (if S v =? P then [] else [Str v]);
     sinks := if v =? 0 then [Buf 1 (start j)] else [Str (v - 1)]; after := [] |}.

(** Stream [s] leads from virtual rank [S s] to virtual rank [s]. *)
Definition chain_reduce : schedule :=
  {| count := P * T; ins := chain_instr;
     streams := fun s => {| origin := real (S s); readers := [real s]; capacity := None |} |}.

Variable n : nat.
Variable in_order : bool.
Hypothesis TOP : top < P.
Hypothesis T1 : 1 <= T.
Hypothesis A : ascending start.
Hypothesis Z : start 0 = 0.
Hypothesis N : start T = n.
Hypothesis ORD : in_order = true -> top = 0.

Definition rc : collective := {| what := Reduce; ranks := P; elems := n; root := top; ordered := in_order |}.

Notation row_div := (row_div P top T start n TOP T1 Z N).
Notation row_mod := (row_mod P top T start n TOP T1 Z N).
Notation row_eq := (row_eq P top T start n TOP T1 Z N).
Notation row_lt := (row_lt P top T start n TOP T1 Z N).
Notation row_in := (row_in P top T start n TOP T1 Z N).
Notation virtual_lt := (virtual_lt P top T start n TOP T1 Z N).
Notation real_lt := (real_lt P top T start n TOP T1 Z N).
Notation real_virtual := (real_virtual P top T start n TOP T1 Z N).
Notation virtual_real := (virtual_real P top T start n TOP T1 Z N).
Notation virtual_zero := (virtual_zero P top T start n TOP T1 Z N).
Notation segment_fits := (segment_fits P top T start n TOP T1 A Z N).

Lemma chain_pushes : forall i s, pushes (chain_instr i) s = true <-> virtual (i / T) = S s.
Proof.
  intros i s. unfold pushes. rewrite <- in_streams. cbn [sinks chain_instr].
  destruct (Nat.eqb_spec (virtual (i / T)) 0); split.
  - intros [H|[]]; discriminate.
  - lia.
  - intros [H|[]]. injection H as H. lia.
  - intros H. left. f_equal. lia.
Qed.

Lemma chain_pops : forall i s, pops (chain_instr i) s = true <-> virtual (i / T) = s /\ S s <> P.
Proof.
  intros i s. unfold pops. rewrite <- in_streams. cbn [sources chain_instr].
  destruct (Nat.eqb_spec (S (virtual (i / T))) P); split.
  - intros [H|[]]; discriminate.
  - intros [H1 H2]. subst s. contradiction.
  - intros [H|[H|[]]]; [discriminate|]. injection H as <-. auto.
  - intros [<- _]. right. now left.
Qed.

Lemma chain_push_at : forall r j s, r < P -> j < T -> virtual r = S s -> push_at chain_reduce (r * T + j) s = sum j L.
Proof.
  intros r j s R J V. unfold push_at. cbn [ins chain_reduce]. rewrite rows_only.
  - apply sum_ext. intros u U. assert (H : pushes (chain_instr (r * T + u)) s = true).
    { apply chain_pushes. rewrite row_div by lia. auto. }
    rewrite H. cbn [len chain_instr]. rewrite row_mod by lia. reflexivity.
  - intros x X. assert (Q : x / T < r) by (apply Nat.div_lt_upper_bound; lia).
    destruct (pushes (chain_instr x) s) eqn:H; auto. exfalso. apply chain_pushes in H.
    assert (x / T = r); [|lia]. rewrite <- (real_virtual (x / T)), <- (real_virtual r) by lia. congruence.
Qed.

Lemma chain_pop_at : forall r j s, r < P -> j < T -> virtual r = s -> S s <> P ->
  pop_at chain_reduce (r * T + j) s = sum j L.
Proof.
  intros r j s R J V SP. unfold pop_at. cbn [ins chain_reduce].
  assert (ND : node (chain_instr (r * T + j)) = r) by (cbn [node chain_instr]; now rewrite row_div by lia).
  rewrite ND, rows_only.
  - apply sum_ext. intros u U. assert (H : pops (chain_instr (r * T + u)) s = true).
    { apply chain_pops. rewrite row_div by lia. auto. }
    rewrite H. cbn [node len chain_instr]. rewrite row_div, row_mod, Nat.eqb_refl by lia. reflexivity.
  - intros x X. assert (Q : x / T < r) by (apply Nat.div_lt_upper_bound; lia). cbn [node chain_instr].
    destruct (pops (chain_instr x) s); auto. destruct (Nat.eqb_spec (x / T) r); [lia|auto].
Qed.

(** The expression at the virtual rank that [d] others follow, over element [e]. *)
Fixpoint chain_value (d e : nat) : tree :=
  match d with 0 => Leaf (real (P - 1)) e | S d' => Node (Leaf (real (P - 1 - d)) e) (chain_value d' e) end.

Definition chain_producer (i s : nat) : nat := real (S s) * T + i mod T.

Lemma reduce_sizes : forall r, r < P -> input_size rc r = n /\ output_size rc r = if r =? top then n else 0.
Proof.
  intros r R. unfold input_size, output_size, block. cbn [what ranks elems root rc].
  replace (r <? P) with true by (symmetry; apply Nat.ltb_lt; auto). auto.
Qed.

Lemma chain_sink : forall i b s, i < P * T -> In (Buf b s) (sinks (chain_instr i)) -> b = 1 /\ s = start (i mod T) /\ i / T = top.
Proof.
  intros i b s K I. destruct (row_lt i K). cbn [sinks chain_instr] in I.
  destruct (Nat.eqb_spec (virtual (i / T)) 0) as [V|]; destruct I as [I|[]]; [|discriminate].
  injection I as <- <-. split; auto. split; auto. now apply virtual_zero.
Qed.

Lemma chain_dataflow : dataflow chain_reduce rc
  (fun i k => chain_value (P - 1 - virtual (i / T)) (start (i mod T) + k)) chain_producer
  (fun i => (P - virtual (i / T)) + i mod T).
Proof.
  constructor; cbn [count ins streams chain_reduce].
  - constructor; cbn [count ins chain_reduce].
    + intros i j s I J X Y. apply chain_pushes in X, Y. destruct (row_lt i I), (row_lt j J).
      cbn [lane chain_instr]. rewrite <- (real_virtual (i / T)), <- (real_virtual (j / T)) by auto. congruence.
    + intros i j s _ _ _ _ E. exact E.
  - reflexivity.
  - reflexivity.
  - intros i b s K I. destruct (row_lt i K) as [R J]. cbn [sources node len chain_instr] in *.
    destruct I as [I|I]; [|destruct (S (virtual (i / T)) =? P); [contradiction|destruct I as [I|[]]; discriminate]].
    injection I as <- <-. split; auto. rewrite (proj1 (reduce_sizes _ R)). now apply segment_fits.
  - intros i s K PO. apply chain_pops in PO as [V SP]. destruct (row_lt i K) as [R J].
    pose proof (virtual_lt _ R) as VL. assert (SV : S s < P) by lia. pose proof (real_lt (S s) SV) as RL.
    pose proof (virtual_real (S s) SV) as VR. unfold chain_producer.
    split; [now apply row_in|]. split; [|split; [|split]].
    + apply chain_pushes. now rewrite row_div by auto.
    + rewrite chain_push_at by auto. rewrite (row_eq i) at 2. now rewrite chain_pop_at by auto.
    + cbn [len chain_instr]. now rewrite row_mod by auto.
    + rewrite row_div, row_mod, VR by auto. lia.
  - intros i b s K I. destruct (row_lt i K) as [R J]. destruct (chain_sink i b s K I) as (-> & -> & E). split; auto.
    cbn [node len chain_instr]. rewrite (proj2 (reduce_sizes _ R)), E, Nat.eqb_refl. now apply segment_fits.
  - intros i j s t k l I J SI SJ E KL LL X. destruct (chain_sink i 1 s I SI) as (_ & -> & _).
    destruct (chain_sink j 1 t J SJ) as (_ & -> & _). cbn [node len chain_instr] in *.
    assert (M : i mod T = j mod T).
    { apply (block_once start _ _ (start (i mod T) + k) A); unfold Tree.L in *; lia. }
    split; [rewrite (row_eq i), (row_eq j); congruence|]. rewrite M in X. lia.
  - intros i j K J E. cbn [lane chain_instr] in E. rewrite (row_eq i), (row_eq j), E in J. rewrite E. lia.
  - intros i j _ _ E. exact E.
  - intros i k K B. destruct (row_lt i K) as [R J]. pose proof (virtual_lt _ R) as VL. unfold source_value.
    cbn [sources node ins chain_reduce chain_instr]. destruct (Nat.eqb_spec (S (virtual (i / T))) P) as [V|V].
    + cbn. replace (P - 1 - virtual (i / T)) with 0 by lia. cbn. do 2 f_equal.
      rewrite <- (real_virtual (i / T)) by auto. f_equal. lia.
    + unfold chain_producer. cbn [map]. unfold value. cbn [fold_left combine]. f_equal.
      assert (SV : S (virtual (i / T)) < P) by lia.
      rewrite row_div, row_mod, virtual_real by auto.
      replace (P - 1 - virtual (i / T)) with (S (P - 1 - S (virtual (i / T)))) by lia. cbn [chain_value]. f_equal. f_equal.
      rewrite <- (real_virtual (i / T)) at 1 by auto. f_equal. lia.
Qed.

Lemma chain_leaves : forall d e, d < P -> leaves (chain_value d e) = contributions e (map real (seq (P - 1 - d) (S d))).
Proof.
  induction d; intros e D; cbn [chain_value leaves].
  - rewrite Nat.sub_0_r. reflexivity.
  - rewrite IHd by lia. change (seq (P - 1 - S d) (S (S d))) with (P - 1 - S d :: seq (S (P - 1 - S d)) (S d)).
    replace (S (P - 1 - S d)) with (P - 1 - d) by lia. reflexivity.
Qed.

Lemma map_shift : forall k a b, map (fun v => v + k) (seq a b) = seq (a + k) b.
Proof. intros k a b. revert a. induction b; intros a; cbn; auto. now rewrite IHb. Qed.

Lemma real_all : map real (seq 0 P) = seq top (P - top) ++ seq 0 top.
Proof.
  replace (seq 0 P) with (seq 0 (P - top) ++ seq (P - top) top) by (rewrite <- (seq_app (P - top)); f_equal; lia).
  rewrite map_app. f_equal.
  - rewrite <- (map_shift top 0). apply map_ext_in. intros v V. apply in_seq in V. unfold Tree.real.
    destruct (Nat.ltb_spec (v + top) P); lia.
  - transitivity (map (fun v => v - (P - top)) (seq (P - top) top)).
    + apply map_ext_in. intros v V. apply in_seq in V. unfold Tree.real. destruct (Nat.ltb_spec (v + top) P); lia.
    + change (seq (P - top) top) with (seq (0 + (P - top)) top). rewrite <- map_shift, map_map.
      rewrite <- (map_id (seq 0 top)) at 2. apply map_ext. intros. lia.
Qed.

Theorem chain_reduce_correct : forall scratch, correct chain_reduce rc scratch.
Proof.
  apply (dataflow_correct _ _ _ _ _ chain_dataflow). intros st H F r d k R DI KL.
  cbn [ranks rc] in R. unfold required in DI. rewrite (proj2 (reduce_sizes r R)) in DI.
  destruct (Nat.eqb_spec r top) as [->|]; [|contradiction].
  assert (D0 : d = {| d_from := 0; d_len := n; d_element := 0; d_first := 0; d_ranks := P |} /\ k < n).
  { destruct n; [contradiction|]. destruct DI as [<-|[]]. auto. }
  destruct D0 as [-> KN]. cbn [d_from d_len d_element d_first d_ranks].
  destruct (block_of start T k A) as (j & J & RNG); [lia|lia|].
  pose proof (output_value chain_reduce rc _ _ _ chain_dataflow st (top * T + j) (start j) (k - start j) H F (row_in top j R J)) as V.
  assert (V0 : virtual top = 0) by (now apply virtual_zero).
  cbn [ins chain_reduce node chain_instr len sinks] in V. rewrite row_div, row_mod, V0 in V by auto.
  replace (start j + (k - start j)) with k in V by lia. eexists. split; [apply V|].
  - now left.
  - unfold Tree.L. lia.
  - rewrite chain_leaves by lia. rewrite Nat.sub_0_r. replace (S (P - 1)) with P by lia. rewrite Nat.sub_diag, real_all.
    unfold alike. cbn [what ordered rc]. destruct in_order.
    + rewrite (ORD eq_refl), Nat.sub_0_r, app_nil_r. reflexivity.
    + apply Permutation_map. rewrite Permutation_app_comm. rewrite <- (seq_app top).
      replace (top + (P - top)) with P by lia. reflexivity.
Qed.

End Chain.

Definition chain_reduce_in_segments (P top most n : nat) : schedule :=
  chain_reduce P top (segment_count most n) (segment_start most n).

Theorem chain_reduce_in_segments_correct : forall P top most n o, top < P -> 1 <= most -> 1 <= n -> (o = true -> top = 0) ->
  forall scratch, correct (chain_reduce_in_segments P top most n)
    {| what := Reduce; ranks := P; elems := n; root := top; ordered := o |} scratch.
Proof. intros P top most n o TP M N O. destruct (segments_fit most n M N) as (? & ? & ? & ?). now apply chain_reduce_correct. Qed.
