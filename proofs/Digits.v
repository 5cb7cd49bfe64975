(** The digits of virtual ranks, and the expressions over the groups of ranks that differ in the lower digits. Some pairs of
    ranks share a virtual rank. *)
From Unisono Require Import Families.

#[local] Arguments Nat.even : simpl never.
#[local] Arguments Nat.mul : simpl never.

(** The value of the first operand and the others, in the order of digits. *)
Lemma value_digits : forall (h : nat -> option tree) t f, 0 < f -> (forall d, d < f -> h d = Some (t d)) ->
  value (map h (seq 0 f)) = Some (fold_left (fun a d => Node a (t d)) (seq 1 (f - 1)) (t 0)).
Proof.
  intros h t f F H. destruct f as [|f]; [lia|]. cbn [seq map value]. rewrite H by lia. replace (S f - 1) with f by lia.
  assert (G : forall l a, (forall d, In d l -> h d = Some (t d)) ->
    fold_left combine (map h l) (Some a) = Some (fold_left (fun a d => Node a (t d)) l a)).
  { induction l as [|d l IH]; intros a HL; cbn; auto. rewrite HL by (now left). cbn. apply IH. intros. apply HL.
    now right. }
  apply G. intros d D. apply in_seq in D. apply H. lia.
Qed.

Lemma intervals : forall s f, ascending s -> flat_map (fun d => seq (s d) (s (S d) - s d)) (seq 0 f) = seq (s 0) (s f -
  s 0).
Proof.
  intros s f A. induction f; [cbn; now rewrite Nat.sub_diag|]. rewrite seq_S, flat_map_app, IHf.
  cbn [flat_map Nat.add]. rewrite app_nil_r.
  pose proof (A 0 f ltac:(lia)). pose proof (A f (S f) ltac:(lia)). replace (s f) with (s 0 + (s f - s 0)) at 2 by lia.
  rewrite <- seq_app. f_equal. lia.
Qed.

Lemma leaves_digits : forall (t : nat -> tree) f, 0 < f -> leaves (fold_left (fun a d => Node a (t d)) (seq 1 (f - 1))
  (t 0)) =
  flat_map (fun d => leaves (t d)) (seq 0 f).
Proof.
  intros t f F. destruct f as [|f]; [lia|]. replace (S f - 1) with f by lia. cbn [seq flat_map].
  apply leaves_fold.
Qed.

Section Digits.
(** [rest] pairs of ranks fold to virtual ranks, of which the factors [fs] are digits. *)
Variable rest : nat.
Variable fs : list nat.

Definition stages : nat := length fs.
Definition factor (k : nat) : nat := nth k fs 1.
Fixpoint weight (k : nat) : nat := match k with 0 => 1 | S h => weight h * factor h end.
Definition whole : nat := weight stages.
Definition P : nat := whole + rest.

(** The virtual rank of a rank, the rank of a virtual rank that stays, and the even rank of a pair, which does not. *)
Definition number (q : nat) : nat := if q <? 2 * rest then q / 2 else q - rest.
Definition rank (v : nat) : nat := if v <? rest then 2 * v + 1 else v + rest.
Definition folded (q : nat) : bool := (q <? 2 * rest) && Nat.even q.

Definition digit (k v : nat) : nat := (v / weight k) mod factor k.
(** The member of the group of [v] in stage [k] that has digit [d]. *)
Definition peer (k v d : nat) : nat := (v / weight (S k) * factor k + d) * weight k + v mod weight k.
(** The streams of stage [k] begin with number [base k]; those of a virtual rank lead to the digits after its own. *)
Definition base (k : nat) : nat := rest + sum k (fun h => whole * (factor h - 1)).
Definition message (k v i : nat) : nat := base k + v * (factor k - 1) + i.
(** The number, from 1 on, of the message from digit [d] to digit [e]. *)
Definition gap (k d e : nat) : nat := if d <? e then e - d else e + factor k - d.

(** The expression over a group of virtual ranks: number [g] of the groups before stage [k]. *)
Fixpoint group (k g e : nat) : tree :=
  match k with
  | 0 => if g <? rest then Node (Leaf (2 * g) e) (Leaf (2 * g + 1) e) else Leaf (g + rest) e
  | S h => fold_left (fun t d => Node t (group h (g * factor h + d) e)) (seq 1 (factor h - 1)) (group h (g * factor h)
    e)
  end.

Hypothesis REST : rest <= whole.
Hypothesis TWO : forall k, k < stages -> 2 <= factor k.

(** * Arithmetic of digits *)
Lemma weight_pos : forall k, k <= stages -> 0 < weight k.
Proof. induction k; intros K; cbn; [lia|]. specialize (IHk ltac:(lia)). pose proof (TWO k ltac:(lia)). nia. Qed.

Lemma weight_divides : forall k, k <= stages -> exists c, whole = c * weight k.
Proof.
  intros k K. unfold whole. generalize stages K. induction 1 as [|m M (c & E)]; [exists 1; lia|].
  exists (c * factor m). cbn [weight]. rewrite E. lia.
Qed.

Lemma split_digit : forall k v, k < stages -> v / weight k = v / weight (S k) * factor k + digit k v.
Proof.
  intros k v K. pose proof (weight_pos k ltac:(lia)). pose proof (TWO k K). unfold digit. cbn [weight].
  rewrite <- Nat.div_div by lia. rewrite (Nat.mul_comm (_ / _)). apply Nat.div_mod. lia.
Qed.

Lemma digit_lt : forall k v, k < stages -> digit k v < factor k.
Proof. intros k v K. pose proof (TWO k K). apply Nat.mod_upper_bound. lia. Qed.

Lemma peer_group : forall k v d, k < stages -> peer k v d / weight k = v / weight (S k) * factor k + d.
Proof.
  intros k v d K. pose proof (weight_pos k ltac:(lia)). unfold peer. rewrite Nat.div_add_l by lia.
  rewrite (Nat.div_small (v mod weight k)) by (apply Nat.mod_upper_bound; lia). lia.
Qed.

Lemma peer_lt : forall k v d, k < stages -> v < whole -> d < factor k -> peer k v d < whole.
Proof.
  intros k v d K B D. destruct (weight_divides (S k) K) as (c & E). pose proof (weight_pos k ltac:(lia)).
  pose proof (weight_pos (S k) K). assert (Q : v / weight (S k) < c) by (apply Nat.div_lt_upper_bound; lia).
  pose proof (Nat.mod_upper_bound v (weight k) ltac:(lia)) as M. unfold peer.
  assert (G : forall x r, x < c -> r < weight k -> (x * factor k + d) * weight k + r < c * (weight k * factor k)).
  { intros x r X R. assert (x * factor k + d + 1 <= c * factor k) by nia. nia. }
  rewrite E. now apply G.
Qed.

Lemma number_lt : forall q, q < P -> number q < whole.
Proof.
  intros q Q. unfold number, P in *. destruct (Nat.ltb_spec q (2 * rest)); [|lia].
  apply Nat.lt_le_trans with rest; auto. apply Nat.div_lt_upper_bound; lia.
Qed.

Lemma rank_lt : forall v, v < whole -> rank v < P.
Proof. intros v B. unfold rank, P. destruct (Nat.ltb_spec v rest); lia. Qed.

Lemma number_rank : forall v, v < whole -> number (rank v) = v /\ folded (rank v) = false.
Proof.
  intros v B. unfold number, rank, folded. destruct (Nat.ltb_spec v rest).
  - destruct (Nat.ltb_spec (2 * v + 1) (2 * rest)); [|lia]. rewrite odd_half. split; auto. cbn.
    replace (2 * v + 1) with (S (2 * v)) by lia. now rewrite Nat.even_succ, <- Nat.negb_even, Nat.even_mul.
  - destruct (Nat.ltb_spec (v + rest) (2 * rest)); [lia|]. cbn. split; [lia|auto].
Qed.

Lemma rank_number : forall q, q < P -> folded q = false -> rank (number q) = q.
Proof.
  intros q Q F. unfold number, rank, folded in *. destruct (Nat.ltb_spec q (2 * rest)).
  - destruct (halves q) as (h & E & [[E2 X]|[E2 X]]); rewrite E2 in F; cbn in F; [discriminate|]. rewrite E.
    destruct (Nat.ltb_spec h rest); lia.
  - destruct (Nat.ltb_spec (q - rest) rest); lia.
Qed.

Lemma base_ascending : ascending base.
Proof.
  intros a b AB. unfold base. replace b with (a + (b - a)) by lia. rewrite sum_split. lia.
Qed.

Lemma base_next : forall k, base (S k) = base k + whole * (factor k - 1).
Proof. intros. unfold base. cbn [sum]. lia. Qed.

Lemma gap_range : forall k d e, d < factor k -> e < factor k -> d <> e -> 0 < gap k d e < factor k.
Proof. intros k d e D E NE. unfold gap. destruct (Nat.ltb_spec d e); lia. Qed.

Lemma message_range : forall k v i, k < stages -> v < whole -> i < factor k - 1 -> base k <= message k v i < base (S k).
Proof. intros k v i K B I. rewrite base_next. unfold message. pose proof (TWO k K). nia. Qed.

Lemma message_sender : forall k v i, k < stages -> i < factor k - 1 -> (message k v i - base k) / (factor k - 1) = v.
Proof.
  intros k v i K I. unfold message. rewrite <- Nat.add_assoc, (Nat.add_comm (base k)), Nat.add_sub.
  rewrite Nat.div_add_l, Nat.div_small by lia. lia.
Qed.

(** * The contributions of a group *)
Definition first (v : nat) : nat := v + Nat.min v rest.

Lemma group_leaves : forall k g e, k <= stages ->
  leaves (group k g e) = contributions e (seq (first (g * weight k)) (first (S g * weight k) - first (g * weight k))).
Proof.
  induction k; intros g e K; cbn [group weight].
  - rewrite !Nat.mul_1_r. unfold first. destruct (Nat.ltb_spec g rest); cbn [leaves app].
    + replace (S g + Nat.min (S g) rest - (g + Nat.min g rest)) with 2 by lia.
      replace (g + Nat.min g rest) with (2 * g) by lia.
      cbn. do 3 f_equal. f_equal. lia.
    + replace (S g + Nat.min (S g) rest - (g + Nat.min g rest)) with 1 by lia.
      replace (g + Nat.min g rest) with (g + rest) by lia. reflexivity.
  - pose proof (TWO k ltac:(lia)). pose proof (leaves_digits (fun d => group k (g * factor k + d) e) (factor k)
    ltac:(lia)) as LD.
    cbv beta in LD. rewrite Nat.add_0_r in LD. rewrite LD. clear LD.
    rewrite (flat_map_ext _ (fun d => contributions e (seq (first ((g * factor k + d) * weight k))
      (first ((g * factor k + S d) * weight k) - first ((g * factor k + d) * weight k))))).
    + rewrite flat_map_contributions. f_equal. rewrite (intervals (fun d => first ((g * factor k + d) * weight k))).
      * f_equal; [f_equal; lia|]. f_equal; f_equal; lia.
      * intros a b AB. unfold first. pose proof (Nat.mul_le_mono_r (g * factor k + a) (g * factor k + b) (weight k)
        ltac:(lia)). lia.
    + intros d. rewrite IHk by lia. do 2 f_equal. f_equal. f_equal. lia.
Qed.

End Digits.
