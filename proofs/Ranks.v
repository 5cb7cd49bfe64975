(** Numbers of ranks: those that count from the root, blocks and segments of a vector, and powers of two. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments Nat.eqb : simpl never.
#[local] Arguments Nat.div : simpl never.
#[local] Arguments Nat.modulo : simpl never.

Lemma firstn_more : forall k (l : list nat) d, k < length l -> firstn (S k) l = firstn k l ++ [nth k l d].
Proof. induction k; intros [|x l] d H; cbn in *; try lia; auto. f_equal. apply IHk. lia. Qed.

(** * Halves *)
Lemma odd_half : forall h, (2 * h + 1) / 2 = h.
Proof. intros. rewrite (Nat.mul_comm 2), Nat.div_add_l by lia. change (1 / 2) with 0. lia. Qed.

Lemma even_half : forall h, 2 * h / 2 = h.
Proof. intros. rewrite Nat.mul_comm. apply Nat.div_mul. lia. Qed.

Lemma halves : forall q, exists h, q / 2 = h /\ (Nat.even q = true /\ q = 2 * h \/ Nat.even q = false /\ q = 2 * h + 1).
Proof.
  intros q. destruct (Nat.even q) eqn:E.
  - apply Nat.even_spec in E as [h ->]. exists h. rewrite even_half. auto.
  - assert (O : Nat.odd q = true) by (unfold Nat.odd; now rewrite E). apply Nat.odd_spec in O as [h ->]. exists h.
    rewrite odd_half. auto.
Qed.

(** * Ranks that count from the top of a tree *)
Section Virtual.
Variables P top : nat.

Definition virtual (r : nat) : nat := if top <=? r then r - top else r + P - top.
Definition real (v : nat) : nat := if v + top <? P then v + top else v + top - P.

Hypothesis TOP : top < P.

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

Lemma map_shift : forall k a b, map (fun v => v + k) (seq a b) = seq (a + k) b.
Proof. intros k a b. revert a. induction b; intros a; cbn; auto. now rewrite IHb. Qed.

Lemma real_all : map real (seq 0 P) = seq top (P - top) ++ seq 0 top.
Proof.
  replace (seq 0 P) with (seq 0 (P - top) ++ seq (P - top) top) by (rewrite <- (seq_app (P - top)); f_equal; lia).
  rewrite map_app. f_equal.
  - rewrite <- (map_shift top 0). apply map_ext_in. intros v V. apply in_seq in V. unfold real.
    destruct (Nat.ltb_spec (v + top) P); lia.
  - transitivity (map (fun v => v - (P - top)) (seq (P - top) top)).
    + apply map_ext_in. intros v V. apply in_seq in V. unfold real. destruct (Nat.ltb_spec (v + top) P); lia.
    + change (seq (P - top) top) with (seq (0 + (P - top)) top). rewrite <- map_shift, map_map.
      rewrite <- (map_id (seq 0 top)) at 2. apply map_ext. intros. lia.
Qed.

End Virtual.

(** * Blocks of a vector: block [b] is from [start b] to [start (S b)] *)
Definition ascending (start : nat -> nat) : Prop := forall a b, a <= b -> start a <= start b.

Lemma block_of : forall start P x, ascending start -> start 0 <= x -> x < start P ->
  exists b, b < P /\ start b <= x < start (S b).
Proof.
  intros start P x A Z H. induction P as [|P IH]; [lia|].
  destruct (Nat.lt_ge_cases x (start P)) as [LT|GE]; [destruct (IH LT) as (b & B & R); exists b; split; auto|].
  exists P. split; auto.
Qed.

Lemma block_once : forall start a b x, ascending start -> start a <= x < start (S a) -> start b <= x < start (S b) -> a
  = b.
Proof.
  intros start a b x A I J. assert (a = b \/ a < b \/ b < a) as [|[G|G]] by lia; auto.
  - specialize (A (S a) b G). lia.
  - specialize (A (S b) a G). lia.
Qed.

Definition segment (start : nat -> nat) (j : nat) : nat := start (S j) - start j.

Lemma segment_fits : forall start T n, ascending start -> start T = n -> forall j,
  j < T -> start j + segment start j <= n.
Proof. intros start T n A N j J. unfold segment. pose proof (A (S j) T J). pose proof (A j (S j) ltac:(lia)). lia. Qed.

Lemma segment_apart : forall start j u x, ascending start -> start j <= x < start (S j) -> u <> j ->
  x < start u \/ start u + segment start u <= x.
Proof.
  intros start j u x A R NE. destruct (Nat.lt_ge_cases x (start u)); auto. right. unfold segment.
  destruct (Nat.lt_ge_cases x (start (S u))); [|lia]. exfalso. apply NE. apply (block_once start _ _ x A); lia.
Qed.

(** Segments of [most] elements, of which the last one may be shorter. *)
Definition segment_start (most n j : nat) : nat := Nat.min (j * most) n.
Definition segment_count (most n : nat) : nat := (n + most - 1) / most.

Lemma segments_fit : forall most n, 1 <= most -> 1 <= n ->
  ascending (segment_start most n) /\ segment_start most n 0 = 0 /\
  segment_start most n (segment_count most n) = n.
Proof.
  intros most n M N. unfold segment_count, segment_start.
  pose proof (Nat.div_mod (n + most - 1) most ltac:(lia)). pose proof (Nat.mod_upper_bound (n + most - 1) most
  ltac:(lia)).
  split; [|split]; try lia.
  - intros a b B. pose proof (Nat.mul_le_mono_r a b most B). lia.
Qed.

(** * The lowest set bit *)
(** The largest power of two, up to 2^[fuel], that divides a number. *)
Fixpoint low_bit (fuel w : nat) : nat :=
  match fuel with 0 => 1 | S f => if Nat.even w then 2 * low_bit f (w / 2) else 1 end.
Definition low (w : nat) : nat := low_bit w w.

Lemma low_bit_spec : forall f w, 0 < w <= f -> exists k a, w = 2 ^ k * (2 * a + 1) /\ low_bit f w = 2 ^ k.
Proof.
  induction f; intros w W; [lia|]. cbn [low_bit]. destruct (Nat.even w) eqn:E.
  - apply Nat.even_spec in E as [h ->]. rewrite Nat.mul_comm, Nat.div_mul by lia.
    destruct (IHf h ltac:(lia)) as (k & a & H & ->). exists (S k), a. rewrite Nat.pow_succ_r'. split; auto. nia.
  - assert (O : Nat.odd w = true) by (unfold Nat.odd; now rewrite E). apply Nat.odd_spec in O as [h ->].
    exists 0, h. cbn. lia.
Qed.

Lemma low_spec : forall w, 0 < w -> exists k a, w = 2 ^ k * (2 * a + 1) /\ low w = 2 ^ k.
Proof. intros w W. now apply low_bit_spec. Qed.

Lemma odd_parts : forall k a l b, 2 ^ k * (2 * a + 1) = 2 ^ l * (2 * b + 1) -> k = l.
Proof.
  induction k; intros a l b E; destruct l; auto; rewrite ?Nat.pow_succ_r' in E; cbn [Nat.pow] in E.
  - exfalso. rewrite <- Nat.mul_assoc in E. lia.
  - exfalso. rewrite <- Nat.mul_assoc in E. lia.
  - f_equal. apply (IHk a l b). rewrite <- !Nat.mul_assoc in E. lia.
Qed.

Lemma low_of : forall k a, low (2 ^ k * (2 * a + 1)) = 2 ^ k.
Proof.
  intros k a. assert (2 ^ k <> 0) by (apply Nat.pow_nonzero; lia).
  destruct (low_spec (2 ^ k * (2 * a + 1)) ltac:(nia)) as (l & b & E & ->). now rewrite (odd_parts k a l b E).
Qed.

(** * Trees: the chain and the binomial tree *)
Definition chain_children (P v : nat) : list nat := if S v <? P then [S v] else [].

Lemma chain_children_of : forall P v w, v < P -> In w (chain_children P v) <-> 0 < w < P /\ Nat.pred w = v.
Proof. intros P v w V. unfold chain_children. destruct (Nat.ltb_spec (S v) P); cbn; destruct w; cbn; intuition lia. Qed.

(** The parent of a rank is that rank without its lowest set bit; a subtree is an interval. *)
Definition binomial_parent (w : nat) : nat := w - low w.
Definition binomial_subtree (P v : nat) : nat := if v =? 0 then P else Nat.min (low v) (P - v).
Definition binomial_children (P v : nat) : list nat :=
  map (fun k => v + 2 ^ k) (filter (fun k => 2 ^ k <? binomial_subtree P v) (seq 0 (Nat.log2_up P))).

Lemma filter_shorter : forall (f : nat -> bool) l, length (filter f l) <= length l.
Proof. induction l as [|x l IH]; cbn; auto. destruct (f x); cbn; lia. Qed.

Lemma binomial_below : forall w, 0 < w -> binomial_parent w < w.
Proof.
  intros w W. unfold binomial_parent. destruct (low_spec w W) as (k & a & _ & ->).
  pose proof (Nat.pow_nonzero 2 k ltac:(lia)). lia.
Qed.

Lemma binomial_child : forall P v k, v < P -> 2 ^ k < binomial_subtree P v ->
  low (v + 2 ^ k) = 2 ^ k /\ v + 2 ^ k < P /\ (v = 0 \/ 2 ^ S k <= low v).
Proof.
  intros P v k V H. unfold binomial_subtree in H. destruct (Nat.eqb_spec v 0) as [->|NZ].
  - split; [|auto]. pose proof (low_of k 0) as E. now rewrite Nat.mul_1_r in E.
  - destruct (low_spec v ltac:(lia)) as (l & a & E & LE). rewrite LE in *.
    assert (K : k < l) by (apply (Nat.pow_lt_mono_r_iff 2); lia). replace l with (k + S (l - k - 1)) in * by lia.
    set (d := l - k - 1) in *. split; [|split; [lia|right; apply Nat.pow_le_mono_r; lia]].
    replace (v + 2 ^ k) with (2 ^ k * (2 * (2 ^ d * (2 * a + 1)) + 1)); [apply low_of|].
    rewrite E, Nat.pow_add_r, Nat.pow_succ_r'. lia.
Qed.

Lemma binomial_children_of : forall P v w, v < P -> In w (binomial_children P v) <-> 0 < w < P /\ binomial_parent w = v.
Proof.
  intros P v w V. unfold binomial_children. rewrite in_map_iff. split.
  - intros (k & <- & I). apply filter_In in I as [_ I]. apply Nat.ltb_lt in I.
    destruct (binomial_child P v k V I) as (E & B & _).
    pose proof (Nat.pow_nonzero 2 k ltac:(lia)). unfold binomial_parent. rewrite E. lia.
  - intros [W E]. destruct (low_spec w ltac:(lia)) as (k & a & WE & LE). unfold binomial_parent in E. rewrite LE in E.
    pose proof (Nat.pow_nonzero 2 k ltac:(lia)). exists k. split; [lia|]. apply filter_In. split.
    + apply in_seq. split; [lia|]. cbn. apply Nat.log2_up_lt_pow2; lia.
    + apply Nat.ltb_lt. unfold binomial_subtree. destruct (Nat.eqb_spec v 0); [lia|].
      destruct (low_spec a ltac:(nia)) as (l & b & AE & _).
      replace v with (2 ^ (S k + l) * (2 * b + 1)) by (rewrite Nat.pow_add_r, Nat.pow_succ_r'; nia).
      rewrite low_of. pose proof (Nat.pow_lt_mono_r 2 k (S k + l) ltac:(lia) ltac:(lia)).
      replace (2 ^ (S k + l) * (2 * b + 1)) with v by (rewrite Nat.pow_add_r, Nat.pow_succ_r'; nia). lia.
Qed.

Lemma binomial_spans : forall P v, v < P ->
  flat_map (fun w => seq w (binomial_subtree P w)) (binomial_children P v) = seq (S v) (binomial_subtree P v - 1).
Proof.
  intros P v V. assert (B : binomial_subtree P v <= P) by (unfold binomial_subtree; destruct (v =? 0); lia).
  assert (G : forall m, flat_map (fun w => seq w (binomial_subtree P w))
    (map (fun k => v + 2 ^ k) (filter (fun k => 2 ^ k <? binomial_subtree P v) (seq 0 m))) =
    seq (S v) (Nat.min (2 ^ m) (binomial_subtree P v) - 1)).
  { induction m as [|m IH].
    - cbn [seq filter map flat_map Nat.pow]. now replace (Nat.min 1 (binomial_subtree P v) - 1) with 0 by lia.
    - rewrite seq_S, filter_app, map_app, flat_map_app, IH. cbn [filter Nat.add]. rewrite Nat.pow_succ_r'.
      destruct (Nat.ltb_spec (2 ^ m) (binomial_subtree P v)) as [LT|GE]; cbn [map flat_map]; rewrite app_nil_r.
      + destruct (binomial_child P v m V LT) as (E & W & H). pose proof (Nat.pow_nonzero 2 m ltac:(lia)).
        assert (X : binomial_subtree P (v + 2 ^ m) = Nat.min (2 * 2 ^ m) (binomial_subtree P v) - 2 ^ m).
        { unfold binomial_subtree at 1. destruct (Nat.eqb_spec (v + 2 ^ m) 0); [lia|]. rewrite E.
          unfold binomial_subtree. destruct (Nat.eqb_spec v 0); [lia|]. destruct H as [H|H]; [lia|].
          rewrite Nat.pow_succ_r' in H. lia. }
        rewrite X. replace (Nat.min (2 ^ m) (binomial_subtree P v) - 1) with (2 ^ m - 1) by lia.
        replace (v + 2 ^ m) with (S v + (2 ^ m - 1)) by lia. rewrite <- seq_app. f_equal. lia.
      + f_equal. lia. }
  unfold binomial_children. rewrite G. f_equal. destruct (Nat.eq_dec P 1) as [->|]; [change (Nat.log2_up 1) with 0;
  cbn [Nat.pow]; lia|].
  pose proof (Nat.log2_up_spec P ltac:(lia)). lia.
Qed.
