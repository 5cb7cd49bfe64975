(** A checker of contents, with the proof that each output of an accepted schedule holds what the collective requires.
    It keeps, for each buffer and stream, assertions about segments: the ranks that an expression combines, and the
    elements of the inputs to which it applies. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Unisono Require Import Model Order Determined Maps OrderCheck RaceCheck Collective.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments get : simpl never.
#[local] Arguments set : simpl never.

(** The ranks of an expression as pairs of a first rank and a number of ranks. *)
Definition value := list (nat * nat).

(** Place [s_from + k] holds [s_value] over element [s_element + k], for all [k] below [s_len]. *)
Record segment := { s_from : nat; s_len : nat; s_value : value; s_element : nat }.

Record contents := { buffers : map (map (list segment)); passing : map (list segment) }.

Section Contents.
Variable sc : schedule.
Variable h : hints.
Variable c : collective.
Variable scratch : nat -> nat.
Notation instr_of := (ins sc).

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

(** Whether the second segment continues the first. *)
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

(** The combination of two operands where both are known and apply to the same element. *)
Definition meet (s t : segment) : list segment :=
  let lo := Nat.max (s_from s) (s_from t) in let hi := Nat.min (s_from s + s_len s) (s_from t + s_len t) in
  if (lo <? hi) && (s_element s + (lo - s_from s) =? s_element t + (lo - s_from t))
  then [{| s_from := lo; s_len := hi - lo; s_value := combined (s_value s) (s_value t);
           s_element := s_element s + (lo - s_from s) |}]
  else [].
Definition meets (ss ts : list segment) : list segment := flat_map (fun s => flat_map (meet s) ts) ss.

(** Whether segments cover all places from [at_] to [l]. *)
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

(** * Soundness *)

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

(** What a segment says about a row of places. *)
Definition true_of (f : nat -> option tree) (s : segment) : Prop := forall k, k < s_len s ->
  exists t, f (s_from s + k) = Some t /\ alike c (leaves t) (contributions (s_element s + k) (expand (s_value s))).

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
  match type of I with In _ (if ?b && ?e then _ else _) => destruct b eqn:L; [|contradiction]; destruct e eqn:E; [|contradiction] end.
  apply Nat.ltb_lt in L. apply Nat.eqb_eq in E. destruct I as [<-|[]]; cbn. split; [|lia].
  intros k K. cbn in *. set (lo := Nat.max (s_from s) (s_from t)) in *.
  destruct (S (lo - s_from s + k)) as (x & FX & AX); [lia|]. destruct (T (lo - s_from t + k)) as (y & FY & AY); [lia|].
  replace (s_from s + (lo - s_from s + k)) with (lo + k) in FX by lia.
  replace (s_from t + (lo - s_from t + k)) with (lo + k) in FY by lia.
  exists (Node x y). rewrite FX, FY. split; auto. cbn. apply alike_combined.
  - now rewrite <- Nat.add_assoc.
  - now rewrite E, <- Nat.add_assoc.
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

Section Sound.
Variable order : list nat.
Hypothesis E : ends sc.
Hypothesis R : runs sc (fun _ => 0) order.
Hypothesis F : forall i, i < count sc -> form_ok sc h i = true.
Hypothesis PO : positions sc h.
Hypothesis A : aligned sc.
Hypothesis B : forall i, i < count sc -> bounds_ok i = true.

Lemma sink_not_input : forall i s, i < count sc -> ~ In (Buf 0 s) (sinks (instr_of i)).
Proof.
  intros i s K I. specialize (B i K). unfold bounds_ok in B. apply andb_true_iff in B as [_ N].
  rewrite forallb_forall in N. specialize (N _ I). discriminate.
Qed.

(** All segments are true of the memory of the run in order, up to and without [i]. *)
Record holds (m : contents) (mem : memory) (pre : list nat) : Prop := {
  h_in : forall n x, mem (PBuf n 0 x) = inputs c (PBuf n 0 x);
  h_buf : forall n b s, In s (get [] (get empty (buffers m) n) b) -> true_of (fun x => mem (PBuf n b x)) s;
  h_str : forall q s, In s (get [] (passing m) q) -> true_of (fun x => mem (PStr q x)) s;
  h_end : forall q s i, In s (get [] (passing m) q) -> i < count sc -> ~ In i pre -> pushes (instr_of i) q = true ->
    s_from s + s_len s <= push_at sc i q }.

Lemma source_true : forall m mem pre i o t, i < count sc -> holds m mem pre -> In o (sources (instr_of i)) ->
  In t (source m i o) ->
  true_of (fun k => mem (source_place sc i k o)) t /\ s_from t + s_len t <= len (instr_of i).
Proof.
  intros m mem pre i o t K H I T. destruct o as [b s|s]; cbn [source source_place] in *.
  - apply (true_read (fun x => mem (PBuf (node (instr_of i)) b x))) in T; auto.
    destruct b as [|b]; [|now apply (h_buf _ _ _ H)].
    intros u [<-|[]] k KL. cbn in *. rewrite (h_in _ _ _ H). cbn. apply Nat.ltb_lt in KL. rewrite KL.
    eexists. split; eauto. apply alike_refl.
  - apply in_streams in I. rewrite <- (proj2 (PO i K) s I).
    apply (true_read (fun x => mem (PStr s x))) in T; auto. now apply (h_str _ _ _ H).
Qed.

Lemma meets_true : forall r f ss l,
  (forall s, In s ss -> true_of f s /\ s_from s + s_len s <= l) ->
  forall gs, Forall2 (fun ts g => forall s, In s ts -> true_of g s) r gs ->
  forall s, In s (fold_left meets r ss) ->
  true_of (fun k => fold_left combine (List.map (fun g : nat -> option tree => g k) gs) (f k)) s /\ s_from s + s_len s <= l.
Proof.
  induction r as [|ts r IH]; intros f ss l H gs G s I; inversion G as [|? g ? gs' HG G']; subst; cbn in *; auto.
  apply (IH (fun k => combine (f k) (g k)) (meets ss ts)); auto.
  intros u U. unfold meets in U. apply in_flat_map in U as (x & X & U). apply in_flat_map in U as (y & Y & U).
  destruct (H x X). destruct (true_meet f g x y u); auto. split; auto. lia.
Qed.

Lemma result_true : forall m mem pre i t, i < count sc -> holds m mem pre -> In t (result m i) ->
  true_of (fun k => value_of sc mem i k) t /\ s_from t + s_len t <= len (instr_of i).
Proof.
  unfold result, value_of, Model.value. intros m mem pre i t K H I.
  pose proof (fun o t => source_true m mem pre i o t K H) as S.
  destruct (sources (instr_of i)) as [|o os]; [contradiction|]. cbn [List.map] in *.
  apply (meets_true _ (fun k => mem (source_place sc i k o)) _ (len (instr_of i))) with
    (gs := List.map (fun o k => mem (source_place sc i k o)) os) in I.
  - destruct I as [T L]. split; auto. intros k KL. destruct (T k KL) as (u & FU & AU). exists u. split; auto.
    rewrite <- FU. now rewrite map_map.
  - intros s IS. apply S; auto. now left.
  - assert (SO : forall p, In p os -> forall s, In s (source m i p) -> true_of (fun k => mem (source_place sc i k p)) s)
      by (intros p P s IS; apply (S p s); auto; now right).
    clear -SO. induction os as [|p os IH]; cbn; constructor; [apply SO; now left|apply IH; intros; eapply SO; eauto; now right].
Qed.

Lemma forget_spec : forall n l os bs q b s, In s (get [] (get empty (fold_left (forget n l) os bs) q) b) ->
  exists u, In u (get [] (get empty bs q) b) /\ forall f, true_of f u -> true_of f s /\
    (q = n -> forall x st, In (Buf b st) os -> s_from s <= x < s_from s + s_len s -> ~ (st <= x < st + l)).
Proof.
  induction os as [|o os IH] using rev_ind; intros bs q b s I.
  { exists s. split; [exact I|]. intros f T. split; [exact T|]. intros _ x st []. }
  rewrite fold_left_app in I. cbn in I. destruct o as [b' st'|t].
  2: { destruct (IH _ _ _ _ I) as (u & U & H). exists u. split; auto. intros f T. destruct (H f T) as [T1 T2].
       split; auto. intros Q x st IN. apply in_app_or in IN as [IN|[IN|[]]]; [|discriminate]. eauto. }
  cbn in I. rewrite get_set in I. destruct (Nat.eqb_spec q n) as [->|N].
  2: { destruct (IH _ _ _ _ I) as (u & U & H). exists u. split; auto. intros f T. destruct (H f T) as [T1 T2].
       split; [auto|intros Q; contradiction]. }
  rewrite get_set in I. destruct (Nat.eqb_spec b b') as [->|NB].
  2: { destruct (IH _ _ _ _ I) as (u & U & H). exists u. split; auto. intros f T. destruct (H f T) as [T1 T2].
       split; auto. intros Q x st IN. apply in_app_or in IN as [IN|[IN|[]]]; [eauto|]. injection IN as -> ->. contradiction. }
  apply in_flat_map in I as (v & IV & I). destruct (IH _ _ _ _ IV) as (u & U & H). exists u. split; auto.
  intros f T. destruct (H f T) as [T1 T2]. unfold without in I.
  assert (SUB : true_of f s /\ (s_from s + s_len s <= st' \/ st' + l <= s_from s) /\
    (forall x, s_from s <= x < s_from s + s_len s -> s_from v <= x < s_from v + s_len v)).
  { assert (RNG : forall a z, In s (clip a z v) -> forall x, s_from s <= x < s_from s + s_len s -> s_from v <= x < s_from v + s_len v).
    { unfold clip. intros a z IC x X. destruct (Nat.ltb_spec (Nat.max (s_from v) a) (Nat.min (s_from v + s_len v) z)); [|contradiction].
      destruct IC as [<-|[]]. cbn in *. lia. }
    apply in_app_or in I as [I|I]; pose proof (RNG _ _ I); apply (true_clip f) in I as (I1 & I2 & I3); auto. }
  destruct SUB as (S1 & S2 & S3). split; auto. intros Q x st IN X. apply in_app_or in IN as [IN|[IN|[]]].
  - eapply T2; eauto.
  - injection IN as ->. lia.
Qed.

Lemma put_spec : forall i parts os m,
  let m' := fold_left (put i parts) os m in
  (forall q b (f : nat -> option tree), (forall s, In s (get [] (get empty (buffers m) q) b) -> true_of f s) ->
    (forall st p, q = node (instr_of i) -> In (Buf b st) os -> In p parts -> true_of f (moved_up st p)) ->
    forall s, In s (get [] (get empty (buffers m') q) b) -> true_of f s) /\
  (forall q (f : nat -> option tree), (forall s, In s (get [] (passing m) q) -> true_of f s) ->
    (forall p, In (Str q) os -> In p parts -> true_of f (moved_up (push_pos h i q) p)) ->
    forall s, In s (get [] (passing m') q) -> true_of f s) /\
  (forall q z, (forall s, In s (get [] (passing m) q) -> s_from s + s_len s <= z) ->
    (forall p, In (Str q) os -> In p parts -> s_from p + s_len p + push_pos h i q <= z) ->
    forall s, In s (get [] (passing m') q) -> s_from s + s_len s <= z).
Proof.
  intros i parts. induction os as [|o os IH]; intros m; cbn; [auto|].
  destruct (IH (put i parts m o)) as (I1 & I2 & I3). destruct o as [b st|q]; cbn [put buffers passing] in *.
  - split; [|split].
    + intros q b' f H G. apply I1; [|intros; eapply G; eauto; now right].
      intros s. rewrite get_set. destruct (Nat.eqb_spec q (node (instr_of i))) as [->|]; [|auto].
      rewrite get_set. destruct (Nat.eqb_spec b' b) as [->|]; [|auto].
      assert (GP : forall p, In p parts -> true_of f (moved_up st p)) by (intros; apply G; auto).
      revert H GP. clear. generalize (get [] (get empty (buffers m) (node (instr_of i))) b).
      induction parts as [|p parts IHp]; cbn; intros l H GP; auto. apply IHp; auto. intros t.
      apply true_add; auto.
    + intros q f H G. apply I2; auto.
    + intros q z H G. apply I3; auto.
  - split; [|split].
    + intros q' b f H G. apply I1; [exact H|]. intros st p Q IN. apply (G st p Q). now right.
    + intros q' f H G. apply I2; [|intros; apply G; auto]. intros s. rewrite get_set.
      destruct (Nat.eqb_spec q' q) as [->|]; [|auto].
      assert (GP : forall p, In p parts -> true_of f (moved_up (push_pos h i q) p)) by (intros; apply G; auto).
      revert H GP. clear. generalize (get [] (passing m) q).
      induction parts as [|p parts IHp]; cbn; intros l H GP; auto. apply IHp; auto.
      intros t T. unfold append in T. destruct l as [|u l]; [destruct T as [<-|[]]; auto|].
      destruct (continues u (moved_up (push_pos h i q) p)) eqn:C.
      * destruct T as [<-|T]; [apply continues_true; auto; apply H; now left|apply H; now right].
      * destruct T as [<-|T]; auto.
    + intros q' z H G. apply I3; [|intros; apply G; auto]. intros s. rewrite get_set.
      destruct (Nat.eqb_spec q' q) as [->|]; [|auto].
      assert (GP : forall p, In p parts -> s_from p + s_len p + push_pos h i q <= z) by (intros; apply G; auto).
      revert H GP. clear. generalize (get [] (passing m) q).
      induction parts as [|p parts IHp]; cbn; intros l H GP; auto. apply IHp; auto.
      intros t T. pose proof (GP p (or_introl eq_refl)) as GPP. unfold append in T.
      destruct l as [|u l]; [destruct T as [<-|[]]; cbn; lia|].
      destruct (continues u (moved_up (push_pos h i q) p)) eqn:C.
      * unfold continues in C. repeat (apply andb_true_iff in C as [C ?]). apply Nat.eqb_eq in C. cbn in *.
        destruct T as [<-|T]; [cbn; lia|apply H; now right].
      * destruct T as [<-|T]; [cbn; lia|auto].
Qed.

Lemma content_step_sound : forall m mem pre i post, order = pre ++ i :: post -> holds m mem pre ->
  holds (content_step m i) (exec sc mem i) (pre ++ [i]).
Proof.
  intros m mem pre i post O H.
  destruct (order_at sc order R (len_pos sc h F) pre i post O) as (K & NI & _ & _ & LP).
  pose proof (fun t => result_true m mem pre i t K H) as RT. unfold content_step.
  destruct (put_spec i (result m i) (sinks (instr_of i))
    {| buffers := fold_left (forget (node (instr_of i)) (len (instr_of i))) (sinks (instr_of i)) (buffers m); passing := passing m |})
    as (P1 & P2 & P3). cbn [buffers passing] in *.
  assert (NEW : forall o p, In o (sinks (instr_of i)) -> In p (result m i) ->
    true_of (fun k => exec sc mem i (sink_place sc i k o)) p).
  { intros o p IO IP. destruct (RT p IP) as [T L]. intros k KL. destruct (T k KL) as (t & FT & AT). exists t.
    split; auto. unfold exec. rewrite written_by_here; auto. lia. }
  constructor.
  - intros n x. unfold exec. destruct (written_by sc i (PBuf n 0 x)) as [k|] eqn:W; [|apply (h_in _ _ _ H)].
    exfalso. apply written_by_some in W as (_ & o & IO & PE). destruct o as [b s|]; cbn in PE; [|discriminate].
    injection PE as _ -> _. now apply sink_not_input in IO.
  - intros n b. apply P1.
    + intros s I. apply forget_spec in I as (u & U & G). apply (h_buf _ _ _ H) in U. destruct (G _ U) as [T NO].
      intros k KL. destruct (T k KL) as (t & FT & AT). exists t. split; auto. unfold exec.
      destruct (written_by sc i (PBuf n b (s_from s + k))) as [e|] eqn:W; auto. exfalso.
      pose proof (written_by_some _ _ _ _ W) as (EL & o & IO & PE). destruct o as [b' st|]; cbn in PE; [|discriminate].
      injection PE as NN -> X. apply (NO (eq_sym NN) (s_from s + k) st IO); lia.
    + intros st p -> IO IP. apply (true_up (fun x => exec sc mem i (PBuf (node (instr_of i)) b x)) st).
      exact (NEW (Buf b st) p IO IP).
  - intros q. apply P2.
    + intros s I. pose proof (h_str _ _ _ H q s I) as T. intros k KL. destruct (T k KL) as (t & FT & AT).
      exists t. split; auto. unfold exec.
      destruct (written_by sc i (PStr q (s_from s + k))) as [e|] eqn:W; auto. exfalso.
      pose proof (written_by_some _ _ _ _ W) as (EL & o & IO & PE). destruct o as [b' st|q']; cbn in PE; [discriminate|].
      injection PE as -> X. apply in_streams in IO. pose proof (h_end _ _ _ H q s i I K NI IO). lia.
    + intros p IO IP. pose proof IO as IO'. apply in_streams in IO'. rewrite (proj1 (PO i K) q IO').
      apply (true_up (fun x => exec sc mem i (PStr q x)) (push_at sc i q)). exact (NEW (Str q) p IO IP).
  - intros q s j IS J NJ PJ. eapply P3; [| |exact IS].
    + intros u U. apply (h_end _ _ _ H q u j); auto. intros C. apply NJ, in_or_app. now left.
    + intros p IO IP. apply in_streams in IO. rewrite (proj1 (PO i K) q IO). destruct (RT p IP) as [_ L].
      assert (N : j <> i) by (intros ->; apply NJ, in_or_app; right; now left).
      assert (i < j).
      { assert (i < j \/ j < i) as [|C] by lia; auto. exfalso. apply NJ, in_or_app. left. apply LP; auto.
        apply (e_push _ E j i q); auto. }
      pose proof (push_apart sc i j q K J IO PJ ltac:(auto)). lia.
Qed.

Lemma run_contents_sound : forall rest m pre m', order = pre ++ rest ->
  holds m (sequential sc (inputs c) pre) pre -> run_contents m rest = Some m' ->
  holds m' (sequential sc (inputs c) order) order.
Proof.
  induction rest as [|i rest IH]; cbn; intros m pre m' O H RC.
  - injection RC as <-. rewrite app_nil_r in O. now rewrite O.
  - destruct (defined m i); [|discriminate]. apply (IH (content_step m i) (pre ++ [i]) m'); auto.
    + now rewrite <- app_assoc.
    + unfold sequential. rewrite fold_left_app. cbn. now apply content_step_sound with rest.
Qed.

(** No instruction of the run in order reads a place that nothing has written. *)
Lemma run_contents_defined : forall rest m pre m', order = pre ++ rest ->
  holds m (sequential sc (inputs c) pre) pre -> run_contents m rest = Some m' ->
  forall pre' i post, order = pre' ++ i :: post -> length pre <= length pre' ->
  forall k o, k < len (instr_of i) -> In o (sources (instr_of i)) ->
  sequential sc (inputs c) pre' (source_place sc i k o) <> None.
Proof.
  induction rest as [|j rest IH]; cbn; intros m pre m' O H RC pre' i post O' LE k o KL IO.
  - exfalso. rewrite app_nil_r in O. assert (X : length order = length order) by auto.
    rewrite O in X at 1. rewrite O', app_length in X. cbn in X. lia.
  - destruct (defined m j) eqn:D; [|discriminate]. destruct (Nat.eq_dec (length pre) (length pre')) as [EL|NL].
    + rewrite O in O'. assert (pre = pre') as <-.
      { clear -EL O'. revert pre' EL O'. induction pre as [|x p IHp]; intros [|y q] EL O'; cbn in *; try lia; auto.
        injection O' as -> O'. f_equal. apply IHp; auto. }
      apply app_inv_head in O'. injection O' as -> _. unfold defined in D. rewrite forallb_forall in D.
      destruct (covers_true _ _ (D o IO) k KL) as (s & IS & RNG).
      destruct (order_at sc order R (len_pos sc h F) pre i rest O) as (K & _).
      destruct (source_true m _ pre i o s K H IO IS) as [T _]. destruct (T (k - s_from s)) as (t & FT & _); [lia|].
      replace (s_from s + (k - s_from s)) with k in FT by lia. congruence.
    + eapply (IH (content_step m j) (pre ++ [j])); eauto.
      * now rewrite <- app_assoc.
      * unfold sequential. rewrite fold_left_app. cbn. now apply content_step_sound with rest.
      * rewrite app_length. cbn. lia.
Qed.

End Sound.

Lemma holds_start : holds {| buffers := empty; passing := empty |} (inputs c) [].
Proof. constructor; cbn; auto; intros *; rewrite ?get_empty; cbn; contradiction. Qed.

(** A schedule that the three checkers accept: when all instructions have run, each output holds what the collective
    requires, whatever the interleaving. *)
Theorem check_contents_sound : forall n steps, let order := List.map fst steps in
  check_order sc h n order = true -> check_races sc h steps = true -> check_contents order = true ->
  forall st, reach sc (inputs c) st -> final sc st -> complete c (mem st).
Proof.
  intros n steps order CO CR CC st RE FI. destruct (check_order_sound _ _ _ _ CO) as [E R].
  destruct (check_races_sound _ _ _ _ CO CR) as [A RF]. pose proof (check_order_form _ _ _ _ CO) as F.
  pose proof (check_order_positions _ _ _ _ CO) as PO. unfold check_contents in CC. apply andb_true_iff in CC as [B CC].
  pose proof (all_below_spec _ _ B) as BO. destruct (run_contents _ order) as [m|] eqn:RC; [|discriminate].
  pose proof (run_contents_sound order E R F PO A BO order _ [] m eq_refl holds_start RC) as H.
  intros r d k RK DI KL. pose proof (all_below_spec _ _ CC r RK) as OK. unfold output_ok in OK.
  rewrite forallb_forall in OK. destruct (covers_true _ _ (OK d DI) k KL) as (s & IS & RNG).
  apply filter_In in IS as [IS RT]. apply (true_read (fun x => mem st (PBuf r 1 x))) in IS as [T _].
  - destruct (T (k - s_from s)) as (t & FT & AT); [lia|]. exists t. replace (s_from s + (k - s_from s)) with k in FT by lia.
    split; auto. unfold right in RT. apply andb_true_iff in RT as [V EL]. apply same_eq in V. apply Nat.eqb_eq in EL.
    rewrite V, EL in AT. cbn in AT. rewrite app_nil_r in AT.
    now replace (d_element d + s_from s + (k - s_from s)) with (d_element d + k) in AT by lia.
  - intros u U. pose proof (h_buf _ _ _ H r 1 u U) as TU. intros e EL. destruct (TU e EL) as (t & FT & AT). exists t.
    split; auto. rewrite (final_memory sc order E R (len_pos sc h F) (inputs c) A RF st RE FI). exact FT.
Qed.

End Contents.
