(** Broadcasts down a tree, for every number of ranks, every root and every list of segments: the binomial tree of
    crates/algorithms/src/catalog/binomial.rs and the chain of crates/algorithms/src/catalog/pipelined_chain.rs. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Unisono Require Import Model Order Determined Collective Checker Dataflow Ring.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments Nat.eqb : simpl never.
#[local] Arguments Nat.div : simpl never.
#[local] Arguments Nat.modulo : simpl never.

Section Tree.
(** [P] ranks, of which [top] has the vector; the parent of each virtual rank, which counts from the top; [T] segments,
    of which number [j] is from element [start j] to [start (S j)]. *)
Variables P top T : nat.
Variable parent : nat -> nat.
Variable start : nat -> nat.

Definition virtual (r : nat) : nat := if top <=? r then r - top else r + P - top.
Definition real (v : nat) : nat := if v + top <? P then v + top else v + top - P.
(** The children of a virtual rank, those with the largest numbers first. *)
Definition children (v : nat) : list nat := filter (fun w => parent w =? v) (rev (seq 1 (P - 1))).

Definition tree_instr (i : nat) : instr :=
  let r := i / T in let j := i mod T in let v := virtual r in
  {| node := r; lane := r; len := start (S j) - start j;
     sources := if v =? 0 then [Buf 0 (start j)] else [Str (v - 1)];
     sinks := (if v =? 0 then [] else [Buf 1 (start j)]) ++ map (fun w => Str (w - 1)) (children v); after := [] |}.

(** Stream [s] leads to virtual rank [S s]. *)
Definition tree_broadcast : schedule :=
  {| count := P * T; ins := tree_instr;
     streams := fun s => {| origin := real (parent (S s)); readers := [real (S s)]; capacity := None |} |}.

Variable n : nat.
Hypothesis TOP : top < P.
Hypothesis T1 : 1 <= T.
Hypothesis below : forall w, 0 < w -> parent w < w.
Hypothesis A : ascending start.
Hypothesis Z : start 0 = 0.
Hypothesis N : start T = n.

Definition c : collective := {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |}.
Definition L (j : nat) : nat := start (S j) - start j.

Lemma row_div : forall q t, t < T -> (q * T + t) / T = q.
Proof. intros. rewrite Nat.add_comm, Nat.div_add, Nat.div_small by lia. lia. Qed.
Lemma row_mod : forall q t, t < T -> (q * T + t) mod T = t.
Proof. intros. rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. lia. Qed.
Lemma row_eq : forall i, i = i / T * T + i mod T.
Proof. intros. rewrite Nat.mul_comm. apply Nat.div_mod. lia. Qed.
Lemma row_lt : forall i, i < P * T -> i / T < P /\ i mod T < T.
Proof. intros. split; [apply Nat.div_lt_upper_bound; lia|apply Nat.mod_upper_bound; lia]. Qed.
Lemma row_in : forall q t, q < P -> t < T -> q * T + t < P * T.
Proof. intros. apply Nat.lt_le_trans with (q * T + T); [lia|]. replace (q * T + T) with (S q * T) by lia. apply Nat.mul_le_mono_r. lia. Qed.

Lemma virtual_lt : forall r, r < P -> virtual r < P.
Proof. intros r R. unfold virtual. destruct (Nat.leb_spec top r); lia. Qed.
Lemma real_lt : forall v, v < P -> real v < P.
Proof. intros v V. unfold real. destruct (Nat.ltb_spec (v + top) P); lia. Qed.
Lemma real_virtual : forall r, r < P -> real (virtual r) = r.
Proof.
  intros r R. unfold real, virtual.
  destruct (Nat.leb_spec top r); match goal with |- context [?a <? ?b] => destruct (Nat.ltb_spec a b) end; lia.
Qed.
Lemma virtual_real : forall v, v < P -> virtual (real v) = v.
Proof.
  intros v V. unfold real, virtual.
  destruct (Nat.ltb_spec (v + top) P); match goal with |- context [?a <=? ?b] => destruct (Nat.leb_spec a b) end; lia.
Qed.
Lemma virtual_zero : forall r, r < P -> virtual r = 0 <-> r = top.
Proof. intros r R. unfold virtual. destruct (Nat.leb_spec top r); lia. Qed.

Lemma in_children : forall v w, In w (children v) <-> 0 < w < P /\ parent w = v.
Proof.
  intros v w. unfold children. rewrite filter_In, <- in_rev, in_seq, Nat.eqb_eq. intuition lia.
Qed.

Lemma tree_pushes : forall i s, pushes (tree_instr i) s = true <-> S s < P /\ parent (S s) = virtual (i / T).
Proof.
  intros i s. unfold pushes. rewrite <- in_streams. cbn [sinks tree_instr]. rewrite in_app_iff, in_map_iff. split.
  - intros [H|(w & E & I)]; [destruct (virtual (i / T) =? 0); [contradiction|]; destruct H as [H|[]]; discriminate|].
    apply in_children in I as [B PE]. injection E as E. replace (S s) with w by lia. split; auto. lia.
  - intros [B PE]. right. exists (S s). split; [f_equal; lia|]. apply in_children. split; auto. lia.
Qed.

Lemma tree_pops : forall i s, pops (tree_instr i) s = true <-> S s = virtual (i / T).
Proof.
  intros i s. unfold pops. rewrite <- in_streams. cbn [sources tree_instr].
  destruct (Nat.eqb_spec (virtual (i / T)) 0); cbn; split.
  - intros [H|[]]; discriminate.
  - lia.
  - intros [H|[]]. injection H as H. lia.
  - intros H. left. f_equal. lia.
Qed.

Lemma rows_only : forall q t (f : nat -> nat), (forall j, j < q * T -> f j = 0) ->
  sum (q * T + t) f = sum t (fun u => f (q * T + u)).
Proof. intros q t f ZZ. rewrite sum_split, (sum_zero (q * T)); auto. Qed.

Lemma tree_push_at : forall r j s, r < P -> j < T -> S s < P -> parent (S s) = virtual r ->
  push_at tree_broadcast (r * T + j) s = sum j L.
Proof.
  intros r j s R J S' PE. unfold push_at. cbn [ins tree_broadcast]. rewrite rows_only.
  - apply sum_ext. intros u U. assert (H : pushes (tree_instr (r * T + u)) s = true).
    { apply tree_pushes. rewrite row_div by lia. auto. }
    rewrite H. cbn [len tree_instr]. rewrite row_mod by lia. reflexivity.
  - intros x X. assert (Q : x / T < r) by (apply Nat.div_lt_upper_bound; lia).
    destruct (pushes (tree_instr x) s) eqn:H; auto. exfalso. apply tree_pushes in H as [_ H].
    assert (x / T = r); [|lia]. rewrite <- (real_virtual (x / T)), <- (real_virtual r) by lia. congruence.
Qed.

Lemma tree_pop_at : forall r j s, r < P -> j < T -> S s = virtual r -> pop_at tree_broadcast (r * T + j) s = sum j L.
Proof.
  intros r j s R J S'. unfold pop_at. cbn [ins tree_broadcast].
  assert (ND : node (tree_instr (r * T + j)) = r) by (cbn [node tree_instr]; now rewrite row_div by lia).
  rewrite ND, rows_only.
  - apply sum_ext. intros u U. assert (H : pops (tree_instr (r * T + u)) s = true).
    { apply tree_pops. rewrite row_div by lia. auto. }
    rewrite H. cbn [node len tree_instr]. rewrite row_div, row_mod, Nat.eqb_refl by lia. reflexivity.
  - intros x X. assert (Q : x / T < r) by (apply Nat.div_lt_upper_bound; lia). cbn [node tree_instr].
    destruct (pops (tree_instr x) s); auto. destruct (Nat.eqb_spec (x / T) r); [lia|auto].
Qed.

Lemma sizes : forall r, r < P -> input_size c r = (if r =? top then n else 0) /\ output_size c r = (if r =? top then 0 else n).
Proof.
  intros r R. unfold input_size, output_size, sender, block. cbn [what ranks elems root c].
  replace (r <? P) with true by (symmetry; apply Nat.ltb_lt; auto). auto.
Qed.

Lemma segment_fits : forall j, j < T -> start j + L j <= n.
Proof. intros j J. unfold L. pose proof (A (S j) T J). pose proof (A j (S j) ltac:(lia)). lia. Qed.

Lemma tree_sink : forall i b s, In (Buf b s) (sinks (tree_instr i)) ->
  b = 1 /\ s = start (i mod T) /\ virtual (i / T) <> 0.
Proof.
  intros i b s I. cbn [sinks tree_instr] in I. apply in_app_or in I as [I|I].
  - destruct (Nat.eqb_spec (virtual (i / T)) 0); [contradiction|]. destruct I as [I|[]]. injection I as <- <-. auto.
  - apply in_map_iff in I as (w & E & _). discriminate.
Qed.

Definition tree_producer (i s : nat) : nat := real (parent (S s)) * T + i mod T.

Lemma tree_dataflow : dataflow tree_broadcast c (fun i k => Leaf top (start (i mod T) + k)) tree_producer
  (fun i => virtual (i / T) + i mod T).
Proof.
  constructor; cbn [count ins streams tree_broadcast].
  - constructor; cbn [count ins tree_broadcast].
    + intros i j s I J X Y. apply tree_pushes in X as [_ X]. apply tree_pushes in Y as [_ Y]. destruct (row_lt i I), (row_lt j J).
      cbn [lane tree_instr]. rewrite <- (real_virtual (i / T)), <- (real_virtual (j / T)) by auto. congruence.
    + intros i j s _ _ _ _ E. exact E.
  - reflexivity.
  - reflexivity.
  - intros i b s K I. destruct (row_lt i K) as [R J]. cbn [sources node len tree_instr] in *.
    destruct (Nat.eqb_spec (virtual (i / T)) 0) as [V|]; [|destruct I as [I|[]]; discriminate].
    destruct I as [I|[]]. injection I as <- <-. split; auto. apply virtual_zero in V; auto.
    rewrite (proj1 (sizes _ R)), V, Nat.eqb_refl. apply (segment_fits (i mod T) J).
  - intros i s K PO. apply tree_pops in PO. destruct (row_lt i K) as [R J].
    pose proof (virtual_lt _ R) as VL. pose proof (below (S s) ltac:(lia)) as PB. assert (SP : S s < P) by lia.
    pose proof (real_lt (parent (S s)) ltac:(lia)) as RL. unfold tree_producer.
    assert (VR : virtual (real (parent (S s))) = parent (S s)) by (apply virtual_real; lia).
    split; [now apply row_in|]. split; [|split; [|split]].
    + apply tree_pushes. rewrite row_div by auto. split; auto.
    + rewrite tree_push_at by auto. rewrite (row_eq i) at 2. now rewrite tree_pop_at by auto.
    + cbn [len tree_instr]. now rewrite row_mod by auto.
    + rewrite row_div, row_mod, VR by auto. lia.
  - intros i b s K I. destruct (row_lt i K) as [R J]. destruct (tree_sink i b s I) as (-> & -> & V). split; auto.
    cbn [node len tree_instr]. rewrite (proj2 (sizes _ R)).
    destruct (Nat.eqb_spec (i / T) top) as [E|]; [exfalso; apply V; now apply virtual_zero|]. apply (segment_fits (i mod T) J).
  - intros i j s t k l I J SI SJ E KL LL X. destruct (tree_sink i 1 s SI) as (_ & -> & _). destruct (tree_sink j 1 t SJ) as (_ & -> & _).
    cbn [node len tree_instr] in *. assert (M : i mod T = j mod T).
    { apply (block_once start _ _ (start (i mod T) + k) A); lia. }
    split; [rewrite (row_eq i), (row_eq j); congruence|]. rewrite M in X. lia.
  - intros i j K J E. cbn [lane tree_instr] in E. rewrite (row_eq i), (row_eq j), E in J. rewrite E. lia.
  - intros i j _ _ E. exact E.
  - intros i k K B. destruct (row_lt i K) as [R J]. unfold source_value. cbn [sources node ins tree_broadcast tree_instr].
    destruct (Nat.eqb_spec (virtual (i / T)) 0) as [V|V].
    + apply virtual_zero in V; auto. cbn. now rewrite V.
    + unfold tree_producer. cbn [map]. unfold value. cbn [fold_left]. now rewrite row_mod by auto.
Qed.

Theorem tree_broadcast_correct : forall scratch, correct tree_broadcast c scratch.
Proof.
  apply (dataflow_correct _ _ _ _ _ tree_dataflow). intros st H F r d k R DI KL.
  cbn [ranks c] in R. unfold required in DI. rewrite (proj2 (sizes r R)) in DI.
  destruct (Nat.eqb_spec r top) as [E|NE]; [contradiction|].
  assert (D0 : d = {| d_from := 0; d_len := n; d_element := 0; d_first := top; d_ranks := 1 |} /\ k < n).
  { destruct n; [contradiction|]. destruct DI as [<-|[]]. auto. }
  destruct D0 as [-> KN]. cbn [d_from d_len d_element d_first d_ranks].
  destruct (block_of start T k A) as (j & J & RNG); [lia|lia|].
  pose proof (output_value tree_broadcast c _ _ _ tree_dataflow st (r * T + j) (start j) (k - start j) H F (row_in r j R J)) as V.
  cbn [ins tree_broadcast node tree_instr len] in V. rewrite row_div, row_mod in V by auto.
  replace (start j + (k - start j)) with k in V by lia. eexists. split; [apply V|].
  - cbn [sinks tree_instr]. rewrite row_div, row_mod by auto. destruct (Nat.eqb_spec (virtual r) 0) as [VZ|]; [exfalso; apply NE; now apply virtual_zero|].
    apply in_or_app. left. now left.
  - lia.
  - unfold alike. cbn [what ordered c leaves]. cbn. replace (start j + (k - start j)) with k by lia. reflexivity.
Qed.

End Tree.

(** The parent in a binomial tree is the rank without its lowest set bit. *)
Definition binomial_parent (w : nat) : nat := w - Nat.gcd w (2 ^ S (Nat.log2 w)).

Lemma binomial_below : forall w, 0 < w -> binomial_parent w < w.
Proof.
  intros w W. unfold binomial_parent. assert (Nat.gcd w (2 ^ S (Nat.log2 w)) <> 0); [|lia].
  intros G. apply Nat.gcd_eq_0 in G. lia.
Qed.

Definition binomial_broadcast (P top T : nat) (start : nat -> nat) : schedule := tree_broadcast P top T binomial_parent start.
Definition chain_broadcast (P top T : nat) (start : nat -> nat) : schedule := tree_broadcast P top T Nat.pred start.

Theorem binomial_broadcast_correct : forall P top T start n, top < P -> 1 <= T -> ascending start -> start 0 = 0 ->
  start T = n -> forall scratch, correct (binomial_broadcast P top T start)
    {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |} scratch.
Proof. intros. apply tree_broadcast_correct; auto. apply binomial_below. Qed.

Theorem chain_broadcast_correct : forall P top T start n, top < P -> 1 <= T -> ascending start -> start 0 = 0 ->
  start T = n -> forall scratch, correct (chain_broadcast P top T start)
    {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |} scratch.
Proof. intros. apply tree_broadcast_correct; auto. intros w W. destruct w; cbn; lia. Qed.

(** Segments of [most] elements, of which the last one may be shorter. *)
Definition segment_start (most n j : nat) : nat := Nat.min (j * most) n.
Definition segment_count (most n : nat) : nat := (n + most - 1) / most.

Lemma segments_fit : forall most n, 1 <= most -> 1 <= n ->
  1 <= segment_count most n /\ ascending (segment_start most n) /\ segment_start most n 0 = 0 /\
  segment_start most n (segment_count most n) = n.
Proof.
  intros most n M N. unfold segment_count, segment_start.
  pose proof (Nat.div_mod (n + most - 1) most ltac:(lia)). pose proof (Nat.mod_upper_bound (n + most - 1) most ltac:(lia)).
  split; [|split; [|split]]; try lia.
  - intros a b B. pose proof (Nat.mul_le_mono_r a b most B). lia.
Qed.

Definition binomial_in_segments (P top most n : nat) : schedule :=
  binomial_broadcast P top (segment_count most n) (segment_start most n).
Definition chain_in_segments (P top most n : nat) : schedule :=
  chain_broadcast P top (segment_count most n) (segment_start most n).

Theorem binomial_in_segments_correct : forall P top most n, top < P -> 1 <= most -> 1 <= n -> forall scratch,
  correct (binomial_in_segments P top most n) {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |} scratch.
Proof. intros P top most n TP M N. destruct (segments_fit most n M N) as (? & ? & ? & ?). now apply binomial_broadcast_correct. Qed.

Theorem chain_in_segments_correct : forall P top most n, top < P -> 1 <= most -> 1 <= n -> forall scratch,
  correct (chain_in_segments P top most n) {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |} scratch.
Proof. intros P top most n TP M N. destruct (segments_fit most n M N) as (? & ? & ? & ?). now apply chain_broadcast_correct. Qed.
