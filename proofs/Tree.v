(** Broadcasts down a tree, for every number of ranks, every root and every list of segments: the binomial tree of
    crates/algorithms/src/catalog/binomial.rs and the chain of crates/algorithms/src/catalog/pipelined_chain.rs. *)
From Unisono Require Import Families.

Section Broadcast.
(** [P] ranks, of which [top] has the vector; the children of each virtual rank, which counts from the top; [T]
    segments, of which number [j] is from element [start j] to [start (S j)]. *)
Variables P top T : nat.
Variable children : nat -> list nat.
Variable parent : nat -> nat.
Variable start : nat -> nat.
Notation virtual := (virtual P top).
Notation real := (real P top).

Definition down_row (q j _ : nat) : slot :=
  let v := virtual q in
  {| size := segment start j; from := [if v =? 0 then Buf 0 (start j) else Str (v - 1)];
     into := (if v =? 0 then [] else [Buf 1 (start j)]) ++ map (fun w => Str (w - 1)) (rev (children v)) |}.

(** Stream [s] leads to virtual rank [S s]. *)
Definition down_ports (s : nat) : nat * nat := (real (parent (S s)), real (S s)).
Definition tree_broadcast : schedule := rows P T 1 down_row down_ports.

Variable n : nat.
Variable scratch : nat -> nat.
Hypothesis TOP : top < P.
Hypothesis A : ascending start.
Hypothesis Z : start 0 = 0.
Hypothesis N : start T = n.
Hypothesis child_of : forall v w, v < P -> In w (children v) <-> 0 < w < P /\ parent w = v.
Hypothesis below : forall w, 0 < w -> parent w < w.

Definition bc : collective := {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |}.
Definition V (_ j _ k : nat) : tree := Leaf top (start j + k).

Notation virtual_lt := (virtual_lt P top TOP).
Notation real_lt := (real_lt P top TOP).
Notation real_virtual := (real_virtual P top TOP).
Notation virtual_real := (virtual_real P top TOP).
Notation virtual_zero := (virtual_zero P top TOP).

Lemma down_pushes : forall q j m s, q < P -> mentions (into (down_row q j m)) s = true <-> S s < P /\ parent (S s) =
  virtual q.
Proof.
  intros q j m s Q. pose proof (virtual_lt q Q). rewrite <- in_streams. cbn [into down_row].
  rewrite in_app_iff, in_map_iff. split.
  - intros [H1|(w & E & I)]; [destruct (virtual q =? 0); [contradiction|]; destruct H1 as [H1|[]]; discriminate|].
    apply in_rev, child_of in I as [B PE]; auto. injection E as E. replace (S s) with w by lia. split; auto. lia.
  - intros [B PE]. right. exists (S s). split; [f_equal; lia|]. apply in_rev. rewrite rev_involutive.
    apply child_of; auto. lia.
Qed.

Lemma down_pops : forall q j m s, mentions (from (down_row q j m)) s = true <-> S s = virtual q.
Proof.
  intros q j m s. rewrite <- in_streams. cbn [from down_row].
  destruct (Nat.eqb_spec (virtual q) 0); cbn; split; try lia.
  - intros [H|[]]. discriminate.
  - intros [H|[]]. injection H as H. lia.
  - intros H. left. f_equal. lia.
Qed.

Lemma sizes : forall r, r < P -> input_size bc r = (if r =? top then n else 0) /\
  output_size bc r = (if r =? top then 0 else n).
Proof. intros r. apply (sizes_of bc). Qed.

Lemma down_sink : forall q j m b s, In (Buf b s) (into (down_row q j m)) -> b = 1 /\ s = start j /\ virtual q <> 0.
Proof.
  intros q j m b s I. cbn [into down_row] in I. apply in_app_or in I as [I|I].
  - destruct (Nat.eqb_spec (virtual q) 0); [contradiction|]. destruct I as [I|[]]. injection I as <- <-. auto.
  - apply in_map_iff in I as (w & E & _). discriminate.
Qed.

Lemma down_source : forall q j m b s, q < P -> In (Buf b s) (from (down_row q j m)) -> b = 0 /\ s = start j /\ q = top.
Proof.
  intros q j m b s Q I. cbn [from down_row] in I. destruct (Nat.eqb_spec (virtual q) 0) as [V0|]; destruct I as [I|[]];
  [|discriminate].
  injection I as <- <-. split; auto. split; auto. now apply virtual_zero.
Qed.

Lemma down_in_rows : in_rows P T 1 down_row down_ports bc scratch V (fun _ j _ _ k => Leaf top (start j + k)) (fun q j _
  => virtual q + j).
Proof.
  constructor.
  - intros q j m b s Q J _ I. pose proof (segment_fits start T n A N j J) as F. destruct (sizes q Q) as [IN OUT].
    unfold room. cbn [size down_row].
    apply in_app_or in I as [I|I].
    + destruct (down_source _ _ _ _ _ Q I) as (-> & -> & ->). rewrite IN, Nat.eqb_refl. auto.
    + destruct (down_sink _ _ _ _ _ I) as (-> & -> & V0). rewrite OUT. destruct (Nat.eqb_spec q top) as [E|]; auto.
      exfalso. apply V0. now apply virtual_zero.
  - intros q j m s _ _ _ I. apply down_sink in I. lia.
  - intros q j m [b s|s] [b' s'|s'] Q _ _ IO IP; try exact Logic.I. intros <-. left. apply down_sink in IO.
    apply in_app_or in IP as [IP|IP]; [apply down_sink in IP; lia|apply down_source in IP; lia].
  - intros q j m q' j' m' s Q _ M Q' _ M' X Y. apply down_pushes in X as [_ X], Y as [_ Y]; auto. split; [|lia].
    rewrite <- (real_virtual q), <- (real_virtual q') by auto. congruence.
  - intros q j m j' m' s _ _ M _ M' _ _. lia.
  - intros q j m s Q J M X. pose proof X as X0. apply down_pops in X. pose proof (virtual_lt q Q).
    pose proof (below (S s) ltac:(lia)).
    assert (VR : virtual (real (parent (S s))) = parent (S s)) by (apply virtual_real; lia).
    pose proof (real_lt (parent (S s)) ltac:(lia)) as RL.
    exists (real (parent (S s))), j, m. split; auto. split; auto. split; auto.
    split; [apply down_pushes; auto; lia|]. split; [|split; [reflexivity|split; [lia|reflexivity]]].
    apply sum_ext. intros u _. unfold pushed_by, popped_by.
    now rewrite (proj2 (down_pushes (real (parent (S s))) u m s RL)), (proj2 (down_pops q u m s)) by (auto; lia).
  - intros q j m j' m' _ _ M M' E. unfold earlier in E. lia.
  - intros q j m k Q J M K. pose proof (segment_fits start T n A N j J) as F. cbn [size from down_row] in *.
    destruct (Nat.eqb_spec (virtual q) 0) as [V0|]; [|reflexivity]. apply virtual_zero in V0; auto. subst q.
    cbn [map source_at].
    rewrite held_input; auto; [|intros j' m' s _ _ I; apply down_sink in I; lia]. cbn.
    rewrite (proj1 (sizes top TOP)), Nat.eqb_refl.
    destruct (Nat.ltb_spec (start j + k) n); [reflexivity|lia].
Qed.

Theorem tree_broadcast_correct : correct tree_broadcast bc scratch.
Proof.
  pose proof (rows_flow _ _ _ _ _ _ _ _ _ _ down_in_rows) as FL. apply (flow_correct _ _ _ _ _ _ FL).
  intros st H F r d k R DI KL.
  cbn [ranks bc] in R. unfold required in DI. rewrite (proj2 (sizes r R)) in DI.
  destruct (Nat.eqb_spec r top) as [E|NE]; [contradiction|].
  one_demand d k n {| d_from := 0; d_len := n; d_element := 0; d_first := top; d_ranks := 1 |} DI KL.
  destruct (block_of start T k A) as (j & J & RNG); [lia|lia|].
  rewrite (final_contents _ _ _ _ _ _ FL) by auto. exists (Leaf top k). split; [|unfold alike; cbn; reflexivity].
  assert (V0 : virtual r <> 0) by (intros X; apply NE; now apply virtual_zero).
  replace k with (start j + (k - start j)) at 1 by lia. unfold tree_broadcast.
  rewrite (last_written P T 1 down_row down_ports bc V _ r j 0); auto.
  - unfold V. do 2 f_equal. lia.
  - apply index_lt; auto.
  - intros t I. apply down_sink in I. lia.
  - cbn [into down_row]. destruct (Nat.eqb_spec (virtual r) 0); [contradiction|]. now left.
  - cbn. unfold segment. lia.
  - intros j' m' J' M' E _ t I. destruct (down_sink _ _ _ _ _ I) as (_ & -> & _). cbn [size down_row].
    replace (start j + (k - start j)) with k by lia. apply (segment_apart start _ _ k A RNG). unfold earlier in E. lia.
Qed.

End Broadcast.

Definition binomial_in_segments (P top most n : nat) : schedule :=
  tree_broadcast P top (segment_count most n) (binomial_children P) binomial_parent (segment_start most n).
Definition chain_in_segments (P top most n : nat) : schedule :=
  tree_broadcast P top (segment_count most n) (chain_children P) Nat.pred (segment_start most n).

Theorem binomial_in_segments_correct : forall P top most n, top < P -> 1 <= most -> 1 <= n -> forall scratch,
  correct (binomial_in_segments P top most n) {| what := Broadcast; ranks := P; elems := n; root := top;
    ordered := false |} scratch.
Proof.
  intros P top most n TP M N scratch. destruct (segments_fit most n M N) as (? & ? & ?).
  apply tree_broadcast_correct; auto using binomial_children_of, binomial_below.
Qed.

Theorem chain_in_segments_correct : forall P top most n, top < P -> 1 <= most -> 1 <= n -> forall scratch,
  correct (chain_in_segments P top most n) {| what := Broadcast; ranks := P; elems := n; root := top;
    ordered := false |} scratch.
Proof.
  intros P top most n TP M N scratch. destruct (segments_fit most n M N) as (? & ? & ?).
  apply tree_broadcast_correct; auto using chain_children_of. intros w W. destruct w; cbn; lia.
Qed.
