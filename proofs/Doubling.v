(** Recursive doubling of crates/algorithms/src/catalog/recursive_doubling.rs, for every number of ranks, and recursive
    multiplying of crates/algorithms/src/catalog/recursive_multiplying.rs without a wrap, for every list of factors. *)
From Unisono Require Import Families Digits Exchange.

#[local] Arguments Nat.even : simpl never.
#[local] Arguments Nat.mul : simpl never.

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
  pose proof (exchange_correct (doubling_pairs P) (repeat 2 (Nat.log2 P)) n o scratch) as C. unfold ec, Digits.P in C.
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
