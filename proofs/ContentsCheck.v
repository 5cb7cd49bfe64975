(** The proof that each output of a schedule holds what the collective requires, if the checker of contents accepts. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model Order Determined Maps OrderCheck Races RaceCheck Collective Contents.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments get : simpl never.
#[local] Arguments set : simpl never.

Section Contents.
Variable sc : schedule.
Variable h : hints.
Variable c : collective.
Variable scratch : nat -> nat.
Notation instr_of := (ins sc).
Notation true_of := (true_of c).
Notation meets := (meets c).
Notation alike_refl := (alike_refl c).
Notation true_clip := (true_clip c).
Notation true_read := (true_read c).
Notation true_up := (true_up c).
Notation continues_true := (continues_true c).
Notation true_add := (true_add c).
Notation true_meet := (true_meet c).
Notation output_ok := (output_ok c).
Notation source := (source sc h c).
Notation result := (result sc h c).
Notation put := (put sc h).
Notation content_step := (content_step sc h c).
Notation bounds_ok := (bounds_ok sc c scratch).
Notation defined := (defined sc h c).
Notation run_contents := (run_contents sc h c).
Notation check_contents := (check_contents sc h c scratch).

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
    eexists. split; eauto. intros _. apply alike_refl.
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
    rewrite V, EL in AT. specialize (AT ltac:(discriminate)). cbn in AT. rewrite app_nil_r in AT.
    now replace (d_element d + s_from s + (k - s_from s)) with (d_element d + k) in AT by lia.
  - intros u U. pose proof (h_buf _ _ _ H r 1 u U) as TU. intros e EL. destruct (TU e EL) as (t & FT & AT). exists t.
    split; auto. rewrite (final_memory sc order E R (len_pos sc h F) (inputs c) A RF st RE FI). exact FT.
Qed.

End Contents.
