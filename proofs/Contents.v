(** A checker of contents. It keeps, for each buffer and stream, assertions about segments: the ranks that an expression
    combines, and the elements of the inputs to which it applies. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Unisono Require Import Model Order Determined Maps OrderCheck Collective.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments get : simpl never.
#[local] Arguments set : simpl never.

(** The ranks of an expression as pairs of a first rank and a number of ranks. An empty list stands for a value that no
    output may hold: it combines a rank twice, or unlike elements of the inputs. *)
Definition value := list (nat * nat).

(** Place [s_from + k] holds [s_value], over element [s_element + k], for all [k] below [s_len]. *)
Record segment := { s_from : nat; s_len : nat; s_value : value; s_element : nat }.

Record contents := { buffers : map (map (list segment)); passing : map (list segment) }.

Section Values.
Variable c : collective.

Fixpoint expand (v : value) : list nat := match v with [] => [] | (a, n) :: r => seq a n ++ expand r end.

(** In order: the ranks of the left operand, then those of the right. *)
Definition first_join (p : nat * nat) (v : value) : value :=
  match v with
  | (b, m) :: r => if fst p + snd p =? b then (fst p, snd p + m) :: r else p :: v
  | [] => [p]
  end.

(** In any order: sorted, with neighbours joined. *)
Fixpoint insert (a n : nat) (v : value) : value :=
  match v with
  | [] => [(a, n)]
  | (b, m) :: r =>
      if a + n =? b then (a, n + m) :: r
      else if a <? b then (a, n) :: v
      else if b + m =? a then insert b (m + n) r
      else (b, m) :: insert a n r
  end.

(** As a set: ranks may be in both. *)
Fixpoint unite (a n : nat) (v : value) : value :=
  match v with
  | [] => [(a, n)]
  | (b, m) :: r =>
      if a + n <? b then (a, n) :: v
      else if b + m <? a then (b, m) :: unite a n r
      else let l := Nat.min a b in unite l (Nat.max (a + n) (b + m) - l) r
  end.

Definition combined (v w : value) : value :=
  match what c with
  | Barrier => fold_left (fun v p => unite (fst p) (snd p) v) w v
  | _ => if ordered c then fold_right first_join w v else fold_left (fun v p => insert (fst p) (snd p) v) w v
  end.

Fixpoint same (v w : value) : bool :=
  match v, w with
  | [], [] => true
  | (a, n) :: v, (b, m) :: w => (a =? b) && (n =? m) && same v w
  | _, _ => false
  end.

(** The part of a segment in [a .. b], if there is one. *)
Definition clip (a b : nat) (s : segment) : list segment :=
  let lo := Nat.max (s_from s) a in let hi := Nat.min (s_from s + s_len s) b in
  if lo <? hi then [{| s_from := lo; s_len := hi - lo; s_value := s_value s; s_element := s_element s + (lo - s_from s) |}]
  else [].

(** The part of a segment before [a] and after [b]. *)
Definition without (a b : nat) (s : segment) : list segment :=
  clip 0 a s ++ clip b (Nat.max b (s_from s + s_len s)) s.

Definition moved_down (a : nat) (s : segment) : segment :=
  {| s_from := s_from s - a; s_len := s_len s; s_value := s_value s; s_element := s_element s |}.
Definition moved_up (a : nat) (s : segment) : segment :=
  {| s_from := s_from s + a; s_len := s_len s; s_value := s_value s; s_element := s_element s |}.

Definition contains (a l : nat) (s : segment) : bool := (s_from s <=? a) && (a + l <=? s_from s + s_len s).

(** The contents of [a .. a + l], counted from [a]. *)
Definition read (ss : list segment) (a l : nat) : list segment :=
  let part s := List.map (moved_down a) (clip a (a + l) s) in
  match find (contains a l) ss with Some s => part s | None => flat_map part ss end.

(** The second segment continues the first. *)
Definition continues (s t : segment) : bool :=
  (s_from s + s_len s =? s_from t) && (s_element s + s_len s =? s_element t) && same (s_value s) (s_value t).
Definition joined (s t : segment) : segment :=
  {| s_from := s_from s; s_len := s_len s + s_len t; s_value := s_value s; s_element := s_element s |}.

Fixpoint add (s : segment) (ss : list segment) : list segment :=
  match ss with
  | [] => [s]
  | t :: r => if continues t s then add (joined t s) r else if continues s t then add (joined s t) r else t :: add s r
  end.

(** Adds a segment to those of a stream, of which the first one came last. *)
Definition append (ss : list segment) (s : segment) : list segment :=
  match ss with t :: r => if continues t s then joined t s :: r else s :: ss | [] => [s] end.

(** The combination of two operands where both are known. *)
(** No rank is in a sorted value twice. *)
Fixpoint once (v : value) : bool :=
  match v with (a, n) :: (((b, _) :: _) as r) => (a + n <=? b) && once r | _ => true end.
(** An output may hold the value, or a combination with it. *)
Definition useful (v : value) : bool :=
  match what c with Barrier => true | _ => if ordered c then length v <=? 1 else once v end.

(** The combination of values over elements [e] and [f]. *)
Definition met (e f : nat) (v w : value) : value :=
  match v, w with
  | [], _ | _, [] => []
  | _, _ => let u := combined v w in if (e =? f) && useful u then u else []
  end.
Definition meet (s t : segment) : list segment :=
  let lo := Nat.max (s_from s) (s_from t) in let hi := Nat.min (s_from s + s_len s) (s_from t + s_len t) in
  let e := s_element s + (lo - s_from s) in
  if lo <? hi
  then [{| s_from := lo; s_len := hi - lo; s_value := met e (s_element t + (lo - s_from t)) (s_value s) (s_value t);
           s_element := e |}]
  else [].
Definition meets (ss ts : list segment) : list segment := flat_map (fun s => flat_map (meet s) ts) ss.

(** The segments cover all places from [at_] to [l]. *)
Fixpoint covers_from (fuel : nat) (ss : list segment) (at_ l : nat) : bool :=
  if l <=? at_ then true
  else match fuel with
    | 0 => false
    | S f => match find (fun s => (s_from s <=? at_) && (at_ <? s_from s + s_len s)) ss with
      | Some s => covers_from f ss (s_from s + s_len s) l
      | None => false
      end
    end.
Definition covers_all (ss : list segment) (l : nat) : bool := covers_from (length ss) ss 0 l.

(** * Assertions about places *)

Lemma alike_refl : forall x, alike c x x.
Proof. intros. unfold alike. destruct (what c), (ordered c); auto; intros; reflexivity. Qed.

Lemma in_permutation : forall (x y : list (nat * nat)), Permutation x y -> forall a, In a x <-> In a y.
Proof. intros x y P a. split; apply Permutation_in; auto. now apply Permutation_sym. Qed.

Lemma contributions_app : forall e x y, contributions e (x ++ y) = contributions e x ++ contributions e y.
Proof. intros. apply map_app. Qed.

Lemma expand_first_join : forall p v, expand (first_join p v) = seq (fst p) (snd p) ++ expand v.
Proof.
  intros [a n] [|[b m] v]; cbn; auto. destruct (Nat.eqb_spec (a + n) b) as [<-|]; cbn; auto.
  now rewrite seq_app, app_assoc.
Qed.

Lemma expand_ordered : forall v w, expand (fold_right first_join w v) = expand v ++ expand w.
Proof.
  induction v as [|[a n] v IH]; cbn [fold_right expand]; intros w; auto.
  now rewrite expand_first_join, IH, app_assoc.
Qed.

Lemma expand_insert : forall v a n, Permutation (expand (insert a n v)) (expand v ++ seq a n).
Proof.
  induction v as [|[b m] v IH]; cbn; intros a n; [now rewrite app_nil_r|].
  destruct (Nat.eqb_spec (a + n) b) as [<-|].
  { cbn. rewrite seq_app, <- app_assoc. apply Permutation_app_comm. }
  destruct (a <? b); [apply (Permutation_app_comm (seq a n))|].
  destruct (Nat.eqb_spec (b + m) a) as [<-|].
  - rewrite IH, seq_app, app_assoc. apply Permutation_app_tail, Permutation_app_comm.
  - cbn. rewrite IH. now rewrite app_assoc.
Qed.

Lemma expand_any : forall w v, Permutation (expand (fold_left (fun v p => insert (fst p) (snd p) v) w v)) (expand v ++ expand w).
Proof.
  induction w as [|[a n] w IH]; cbn; intros v; [now rewrite app_nil_r|]. rewrite IH, expand_insert. now rewrite <- app_assoc.
Qed.

Lemma expand_unite : forall v a n x, In x (expand (unite a n v)) <-> In x (expand v) \/ In x (seq a n).
Proof.
  induction v as [|[b m] v IH]; cbn; intros a n x; [rewrite in_app_iff; cbn; tauto|].
  destruct (Nat.ltb_spec (a + n) b); [cbn; rewrite !in_app_iff; tauto|].
  destruct (Nat.ltb_spec (b + m) a); [cbn; rewrite !in_app_iff, IH; tauto|].
  rewrite IH, in_app_iff, !in_seq.
  destruct (Nat.min_spec a b) as [[? Q]|[? Q]], (Nat.max_spec (a + n) (b + m)) as [[? W]|[? W]]; rewrite ?Q, ?W; intuition lia.
Qed.

Lemma expand_set : forall w v x, In x (expand (fold_left (fun v p => unite (fst p) (snd p) v) w v)) <-> In x (expand v) \/ In x (expand w).
Proof.
  induction w as [|[a n] w IH]; cbn; intros v x; [tauto|]. rewrite IH, expand_unite, in_app_iff. tauto.
Qed.

Lemma alike_combined : forall x y v w e, alike c x (contributions e (expand v)) -> alike c y (contributions e (expand w)) ->
  alike c (x ++ y) (contributions e (expand (combined v w))).
Proof.
  unfold alike, combined. intros x y v w e X Y.
  assert (ORD : (if ordered c then x = contributions e (expand v) else Permutation x (contributions e (expand v))) ->
    (if ordered c then y = contributions e (expand w) else Permutation y (contributions e (expand w))) ->
    if ordered c then x ++ y = contributions e (expand (if ordered c then fold_right first_join w v else fold_left (fun v p => insert (fst p) (snd p) v) w v))
    else Permutation (x ++ y) (contributions e (expand (if ordered c then fold_right first_join w v else fold_left (fun v p => insert (fst p) (snd p) v) w v)))).
  { destruct (ordered c); intros P Q.
    - rewrite expand_ordered, contributions_app. congruence.
    - transitivity (contributions e (expand v ++ expand w)); [rewrite contributions_app; now apply Permutation_app|].
      apply Permutation_map, Permutation_sym, expand_any. }
  revert X Y. destruct (what c); auto.
  intros X Y a. rewrite in_app_iff, X, Y. unfold contributions. rewrite !in_map_iff. split.
  - intros [(r & <- & I)|(r & <- & I)]; exists r; split; auto; apply expand_set; auto.
  - intros (r & <- & I). apply expand_set in I as [I|I]; [left|right]; eauto.
Qed.

Lemma same_eq : forall v w, same v w = true -> v = w.
Proof.
  induction v as [|[a n] v IH]; intros [|[b m] w] H; cbn in H; try discriminate; auto.
  repeat (apply andb_true_iff in H as [H ?]). apply Nat.eqb_eq in H. 
  match goal with X : (_ =? _) = true |- _ => apply Nat.eqb_eq in X end. subst. f_equal. auto.
Qed.

(** A segment is true of a row of places: each holds a tree over the contributions of its element. *)
Definition true_of (f : nat -> option tree) (s : segment) : Prop := forall k, k < s_len s ->
  exists t, f (s_from s + k) = Some t /\
    (s_value s <> [] -> alike c (leaves t) (contributions (s_element s + k) (expand (s_value s)))).

Lemma true_clip : forall f a b s t, true_of f s -> In t (clip a b s) ->
  true_of f t /\ a <= s_from t /\ s_from t + s_len t <= b.
Proof.
  unfold clip. intros f a b s t T I. destruct (Nat.ltb_spec (Nat.max (s_from s) a) (Nat.min (s_from s + s_len s) b)) as [L|]; [|contradiction].
  destruct I as [<-|[]]; cbn. split; [|lia]. intros k K. cbn in *.
  destruct (T (Nat.max (s_from s) a - s_from s + k)) as (t & F & A); [lia|]. exists t.
  replace (Nat.max (s_from s) a + k) with (s_from s + (Nat.max (s_from s) a - s_from s + k)) by lia.
  split; auto. now rewrite <- Nat.add_assoc.
Qed.

Lemma true_read : forall f ss a l t, (forall s, In s ss -> true_of f s) -> In t (read ss a l) ->
  true_of (fun k => f (a + k)) t /\ s_from t + s_len t <= l.
Proof.
  unfold read. intros f ss a l t T I.
  assert (P : forall s, In s ss -> In t (List.map (moved_down a) (clip a (a + l) s)) ->
    true_of (fun k => f (a + k)) t /\ s_from t + s_len t <= l).
  { intros s S M. apply in_map_iff in M as (u & <- & U). destruct (true_clip f _ _ _ _ (T s S) U) as (TU & ? & ?).
    cbn. split; [|lia]. intros k K. cbn in *. replace (a + (s_from u - a + k)) with (s_from u + k) by lia. now apply TU. }
  destruct (find (contains a l) ss) as [s|] eqn:F.
  - apply find_some in F as [S _]. eauto.
  - apply in_flat_map in I as (s & S & M). eauto.
Qed.

Lemma true_up : forall f a s, true_of (fun k => f (a + k)) s -> true_of f (moved_up a s).
Proof. intros f a s T k K. cbn in *. destruct (T k K) as (t & F & A). exists t. split; auto. rewrite <- F. f_equal. lia. Qed.

Lemma continues_true : forall f s t, continues s t = true -> true_of f s -> true_of f t -> true_of f (joined s t).
Proof.
  unfold continues. intros f s t C S T k K. repeat (apply andb_true_iff in C as [C ?]).
  apply Nat.eqb_eq in C. match goal with X : (_ =? _) = true |- _ => apply Nat.eqb_eq in X; rename X into E end.
  match goal with X : same _ _ = true |- _ => apply same_eq in X; rename X into V end. cbn in *.
  destruct (Nat.lt_ge_cases k (s_len s)) as [L|G]; [now apply S|].
  destruct (T (k - s_len s)) as (u & F & A); [lia|]. exists u. rewrite V. split.
  - rewrite <- F. f_equal. lia.
  - now replace (s_element s + k) with (s_element t + (k - s_len s)) by lia.
Qed.

Lemma true_add : forall f ss s, true_of f s -> (forall t, In t ss -> true_of f t) -> forall t, In t (add s ss) -> true_of f t.
Proof.
  induction ss as [|u ss IH]; cbn; intros s S T t I; [now destruct I as [<-|[]]|].
  destruct (continues u s) eqn:C1.
  { apply (IH (joined u s)); auto. now apply continues_true; auto. }
  destruct (continues s u) eqn:C2.
  { apply (IH (joined s u)); auto. now apply continues_true; auto. }
  destruct I as [<-|I]; auto. eapply IH; eauto.
Qed.

Lemma true_meet : forall f g s t u, true_of f s -> true_of g t -> In u (meet s t) ->
  true_of (fun k => combine (f k) (g k)) u /\ s_from u + s_len u <= s_from s + s_len s.
Proof.
  unfold meet. intros f g s t u S T I.
  match type of I with In _ (if ?b then _ else _) => destruct b eqn:L; [|contradiction] end.
  apply Nat.ltb_lt in L. destruct I as [<-|[]]; cbn. split; [|lia].
  intros k K. cbn in *. set (lo := Nat.max (s_from s) (s_from t)) in *.
  destruct (S (lo - s_from s + k)) as (x & FX & AX); [lia|]. destruct (T (lo - s_from t + k)) as (y & FY & AY); [lia|].
  replace (s_from s + (lo - s_from s + k)) with (lo + k) in FX by lia.
  replace (s_from t + (lo - s_from t + k)) with (lo + k) in FY by lia.
  exists (Node x y). rewrite FX, FY. split; auto. cbn. unfold met. intros NE.
  destruct (s_value s) as [|p v]; [contradiction|]. destruct (s_value t) as [|r w]; [contradiction|].
  destruct (Nat.eqb_spec (s_element s + (lo - s_from s)) (s_element t + (lo - s_from t))) as [E|]; [|contradiction].
  cbn [andb] in *. destruct (useful _); [|contradiction]. apply alike_combined.
  - rewrite <- Nat.add_assoc. now apply AX.
  - rewrite E, <- Nat.add_assoc. now apply AY.
Qed.

Lemma covers_true : forall ss l, covers_all ss l = true -> forall k, k < l ->
  exists s, In s ss /\ s_from s <= k < s_from s + s_len s.
Proof.
  unfold covers_all. intros ss l. generalize (length ss). 
  assert (G : forall fuel at_, covers_from fuel ss at_ l = true -> forall k, at_ <= k < l ->
    exists s, In s ss /\ s_from s <= k < s_from s + s_len s).
  { induction fuel as [|fuel IH]; cbn; intros at_ H k K; destruct (Nat.leb_spec l at_); try lia; try discriminate.
    destruct (find _ ss) as [s|] eqn:F; [|discriminate]. apply find_some in F as [I C].
    apply andb_true_iff in C as [C1 C2]. apply Nat.leb_le in C1. apply Nat.ltb_lt in C2.
    destruct (Nat.lt_ge_cases k (s_from s + s_len s)) as [LT|GE]; [exists s; split; auto; lia|]. apply (IH (s_from s + s_len s)); auto; lia. }
  intros n H k K. apply (G n 0); auto; lia.
Qed.

End Values.

(** * The checker *)
Section Contents.
Variable sc : schedule.
Variable h : hints.
Variable c : collective.
Variable scratch : nat -> nat.
Notation instr_of := (ins sc).
Notation meets := (meets c).

Definition source (m : contents) (i : nat) (o : operand) : list segment :=
  let x := instr_of i in
  match o with
  | Buf b s => read (match b with
      | 0 => [{| s_from := 0; s_len := input_size c (node x); s_value := [(node x, 1)]; s_element := 0 |}]
      | _ => get [] (get empty (buffers m) (node x)) b
      end) s (len x)
  | Str s => read (get [] (passing m) s) (pop_pos h i s) (len x)
  end.

Definition result (m : contents) (i : nat) : list segment :=
  match List.map (source m i) (sources (instr_of i)) with [] => [] | v :: r => fold_left meets r v end.

(** Forgets the contents that an instruction replaces. *)
Definition forget (n l : nat) (bs : map (map (list segment))) (o : operand) : map (map (list segment)) :=
  match o with
  | Buf b s => let row := get empty bs n in set bs n (set row b (flat_map (without s (s + l)) (get [] row b)))
  | Str _ => bs
  end.

Definition put (i : nat) (parts : list segment) (m : contents) (o : operand) : contents :=
  let n := node (instr_of i) in
  match o with
  | Buf b s => let row := get empty (buffers m) n in
      {| buffers := set (buffers m) n (set row b (fold_left (fun ss p => add (moved_up s p) ss) parts (get [] row b)));
         passing := passing m |}
  | Str s =>
      {| buffers := buffers m;
         passing := set (passing m) s (fold_left (fun ss p => append ss (moved_up (push_pos h i s) p)) parts (get [] (passing m) s)) |}
  end.

Definition content_step (m : contents) (i : nat) : contents :=
  let x := instr_of i in let parts := result m i in
  fold_left (put i parts) (sinks x)
    {| buffers := fold_left (forget (node x) (len x)) (sinks x) (buffers m); passing := passing m |}.

(** Operands lie in their buffers, no input is written, and there are sources. *)
Definition bounds_ok (i : nat) : bool :=
  let x := instr_of i in let n := node x in
  let fits := fun o => match o with
    | Buf b s => s + len x <=? match b with 0 => input_size c n | 1 => output_size c n | 2 => scratch n | _ => 0 end
    | Str _ => true
    end in
  negb (length (sources x) =? 0) && negb (length (sinks x) =? 0) && forallb fits (sources x) && forallb fits (sinks x) &&
  forallb (fun o => match o with Buf 0 _ => false | _ => true end) (sinks x).

(** Every source of an instruction has been written when it runs. *)
Definition defined (m : contents) (i : nat) : bool :=
  forallb (fun o => covers_all (source m i o) (len (instr_of i))) (sources (instr_of i)).

Fixpoint run_contents (m : contents) (order : list nat) : option contents :=
  match order with
  | [] => Some m
  | i :: r => if defined m i then run_contents (content_step m i) r else None
  end.

Definition right (d : demand) (s : segment) : bool :=
  same (s_value s) [(d_first d, d_ranks d)] && (s_element s =? d_element d + s_from s).

Definition output_ok (m : contents) (r : nat) : bool :=
  forallb (fun d => covers_all (filter (right d) (read (get [] (get empty (buffers m) r) 1) (d_from d) (d_len d))) (d_len d))
    (required c r).

Definition check_contents (order : list nat) : bool :=
  all_below (count sc) bounds_ok &&
  match run_contents {| buffers := empty; passing := empty |} order with
  | Some m => all_below (ranks c) (output_ok m)
  | None => false
  end.

End Contents.
