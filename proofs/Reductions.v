(** Reductions up the binomial tree of crates/algorithms/src/catalog/binomial.rs and up the chain of
    crates/algorithms/src/catalog/pipelined_chain.rs, for every number of ranks and every root. *)
From Coq Require Import FinFun.
From Unisono Require Import Families Reduce.

(** The scratch memory of the ranks: a partial sum, if there are several children to add and no output to hold it. *)
Definition reduce_scratch (P top root most n : nat) (children : nat -> list nat) (q : nat) : nat :=
  if (1 <? length (children (virtual P top q))) && negb (q =? root) then Nat.min most n else 0.

Lemma scratch_enough : forall P top root most n children q j, 1 < length (children (virtual P top q)) -> q <> root ->
  segment (segment_start most n) j <= reduce_scratch P top root most n children q.
Proof.
  intros P top root most n children q j C NE. unfold reduce_scratch, segment, segment_start.
  destruct (Nat.ltb_spec 1 (length (children (virtual P top q)))); [|lia].
  destruct (Nat.eqb_spec q root); [contradiction|]. cbn. lia.
Qed.

(** * The chain *)
(** If the operator does not commute, rank 0 is the top. *)
Definition top_of (ordered : bool) (root : nat) : nat := if ordered then 0 else root.

Definition chain_reduce_in_segments (P top root most n : nat) : schedule :=
  tree_reduce P top root (segment_count most n) 2 (chain_children P) Nat.pred (segment_start most n).

Definition chain_scratch (P top root most n : nat) : nat -> nat := reduce_scratch P top root most n (chain_children P).

Theorem chain_reduce_in_segments_correct : forall P root most n o, root < P -> 1 <= most -> 1 <= n ->
  correct (chain_reduce_in_segments P (top_of o root) root most n)
    {| what := Reduce; ranks := P; elems := n; root := root; ordered := o |}
    (chain_scratch P (top_of o root) root most n).
Proof.
  intros P root most n o R M N. destruct (segments_fit most n M N) as (A & Z & E).
  apply tree_reduce_correct with (subtree := fun v => P - v); auto; try lia.
  - unfold top_of. destruct o; lia.
  - unfold top_of. now destruct o.
  - intros. now apply scratch_enough.
  - apply chain_children_of.
  - intros v _. unfold chain_children. destruct (S v <? P); repeat constructor; auto.
  - intros v. unfold chain_children. destruct (S v <? P); cbn; lia.
  - intros v V. unfold chain_children. destruct (Nat.ltb_spec (S v) P); cbn.
    + rewrite app_nil_r. f_equal. lia.
    + now replace (P - v - 1) with 0 by lia.
Qed.

(** * The binomial tree *)
Definition binomial_reduce_in_segments (P top root most n : nat) : schedule :=
  tree_reduce P top root (segment_count most n) (S (Nat.log2_up P)) (binomial_children P) binomial_parent (segment_start
    most n).

Definition binomial_scratch (P top root most n : nat) : nat -> nat := reduce_scratch P top root most n
  (binomial_children P).

Theorem binomial_reduce_in_segments_correct : forall P root most n o, root < P -> 1 <= most -> 1 <= n ->
  correct (binomial_reduce_in_segments P (top_of o root) root most n)
    {| what := Reduce; ranks := P; elems := n; root := root; ordered := o |}
    (binomial_scratch P (top_of o root) root most n).
Proof.
  intros P root most n o R M N. destruct (segments_fit most n M N) as (A & Z & E).
  apply tree_reduce_correct with (subtree := binomial_subtree P); auto.
  - unfold top_of. destruct o; lia.
  - unfold top_of. now destruct o.
  - intros. now apply scratch_enough.
  - apply binomial_children_of.
  - apply binomial_below.
  - intros v _. apply FinFun.Injective_map_NoDup.
    + intros k l X. apply (Nat.pow_inj_r 2); lia.
    + apply NoDup_filter, seq_NoDup.
  - intros v. unfold binomial_children. rewrite map_length.
    pose proof (filter_shorter (fun k => 2 ^ k <? binomial_subtree P v) (seq 0 (Nat.log2_up P))) as F.
    rewrite seq_length in F. lia.
  - apply binomial_spans.
  - intros v V. unfold binomial_subtree. destruct (Nat.eqb_spec v 0); [lia|].
    destruct (low_spec v ltac:(lia)) as (k & a & _ & ->). pose proof (Nat.pow_nonzero 2 k ltac:(lia)). lia.
Qed.
