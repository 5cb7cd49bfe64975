(** Finite maps with natural numbers as keys, and loops over all numbers below a bound. *)
From Coq Require Import List Arith Lia Bool PArith FMapPositive.
Import ListNotations.

Module P := PositiveMap.

Definition map (A : Type) := P.t A.
Definition empty {A} : map A := P.empty A.
Definition get {A} (none : A) (m : map A) (k : nat) : A :=
  match P.find (Pos.of_succ_nat k) m with Some v => v | None => none end.
Definition set {A} (m : map A) (k : nat) (v : A) : map A := P.add (Pos.of_succ_nat k) v m.

Lemma get_empty : forall A (none : A) k, get none empty k = none.
Proof. intros. unfold get, empty. now rewrite P.gempty. Qed.

Lemma get_set : forall A (none : A) m k v j, get none (set m k v) j = if j =? k then v else get none m j.
Proof.
  intros. unfold get, set. destruct (Nat.eqb_spec j k) as [->|N]; [now rewrite P.gss|].
  rewrite P.gso; auto. intros E. now apply SuccNat2Pos.inj in E.
Qed.

(** Adds [l] at each of the keys. *)
Definition add_all (l : nat) (ks : list nat) (m : map nat) : map nat :=
  fold_left (fun m k => set m k (get 0 m k + l)) ks m.

Lemma get_add_all : forall l ks m j, NoDup ks ->
  get 0 (add_all l ks m) j = get 0 m j + if existsb (Nat.eqb j) ks then l else 0.
Proof.
  unfold add_all. induction ks as [|k ks IH]; cbn; intros m j N; [lia|]. inversion N as [|? ? F N']; subst.
  rewrite IH, get_set by auto. destruct (Nat.eqb_spec j k) as [->|M]; cbn; auto.
  destruct (existsb (Nat.eqb k) ks) eqn:E; [|lia].
  apply existsb_exists in E as (x & I & Q). apply Nat.eqb_eq in Q. now subst.
Qed.

Fixpoint distinct (ks : list nat) : bool :=
  match ks with [] => true | k :: r => negb (existsb (Nat.eqb k) r) && distinct r end.

Lemma distinct_nodup : forall ks, distinct ks = true -> NoDup ks.
Proof.
  induction ks as [|k ks IH]; cbn; intros H; constructor; apply andb_true_iff in H as [H D]; auto.
  intros I. apply negb_true_iff in H. rewrite <- not_true_iff_false, existsb_exists in H.
  apply H. exists k. now rewrite Nat.eqb_refl.
Qed.

Fixpoint all_below (n : nat) (f : nat -> bool) : bool :=
  match n with 0 => true | S m => f m && all_below m f end.

Lemma all_below_spec : forall n f, all_below n f = true -> forall i, i < n -> f i = true.
Proof.
  induction n; cbn; intros f H i I; [lia|]. apply andb_true_iff in H as [H R].
  destruct (Nat.eq_dec i n) as [->|]; auto. apply IHn; auto; lia.
Qed.
