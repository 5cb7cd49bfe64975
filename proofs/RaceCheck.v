(** The proof that accesses which clash are ordered in every execution, if the checker of races accepts. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model Order Determined Maps OrderCheck Races.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments get : simpl never.
#[local] Arguments set : simpl never.

Section Race.
Variable sc : schedule.
Variable h : hints.
Notation instr_of := (ins sc).
Notation learn := (learn sc).
Notation meets_at_start := (meets_at_start sc h).
Notation meets_at_end := (meets_at_end sc h).
Notation carried := (carried sc h).
Notation base := (base sc).
Notation derive := (derive sc h).
Notation add_fact := (add_fact sc).
Notation take_claims := (take_claims sc h).
Notation learn_all := (learn_all sc).
Notation accesses := (accesses sc).
Notation all_accesses := (all_accesses sc).
Notation race_step := (race_step sc h).
Notation run_races := (run_races sc h).
Notation slices_ok := (slices_ok sc).
Notation check_races := (check_races sc h).

Section Sound.
Variable order : list nat.
Hypothesis E : ends sc.
Hypothesis R : runs sc (fun _ => 0) order.
Hypothesis F : forall i, i < count sc -> form_ok sc h i = true.
Hypothesis PO : positions sc h.

Lemma len_pos : forall i, i < count sc -> 0 < len (instr_of i).
Proof. intros i K. apply (form_fields _ _ F i K). Qed.

Definition fact_true (f : nat * nat * bool) : Prop :=
  let '(j, x, b) := f in
  j < count sc /\ x < count sc /\ if b then over sc j x else over_at_end sc j x.

Lemma over_later : forall j x y, j < count sc -> over sc j x -> lane (instr_of y) = lane (instr_of x) -> y <= x ->
  x < count sc -> over sc j y.
Proof.
  intros j x y J O L Y X d V D. specialize (O d V D). destruct (Nat.eq_dec y x) as [->|N]; auto.
  apply (v_lane _ _ V x y); auto; try lia. rewrite O. now apply len_pos.
Qed.

(** A fact about [about] holds when a later instruction of the lane starts. *)
Lemma moved_on : forall about via x st, about < count sc -> via < count sc ->
  lane (instr_of about) = lane (instr_of via) -> about <= via ->
  (if st : bool then over sc about x else over_at_end sc about x) ->
  if st || (about <? via) then over sc via x else over_at_end sc via x.
Proof.
  intros about via x st A VI L LE H. destruct (Nat.ltb_spec about via) as [LT|GE]; cbn.
  - rewrite orb_true_r. intros d V D. assert (C : d about = len (instr_of about)) by (apply (v_lane _ _ V via about); auto).
    destruct st; apply H; auto. rewrite C. now apply len_pos.
  - rewrite orb_false_r. now replace via with about by lia.
Qed.

Lemma popped_some : forall d j s, inv sc d -> j < count sc -> pops (instr_of j) s = true -> 0 < d j ->
  pop_at sc j s + d j <= pushed sc d s.
Proof.
  intros d j s V J P D. pose proof (v_pop _ _ V j s J P). unfold popped in H.
  assert (SP : forall n f i, i < n -> sum i f + f i <= sum n f).
  { clear. induction n; cbn; intros f i I; [lia|]. destruct (Nat.eq_dec i n) as [->|]; auto. specialize (IHn f i). lia. }
  pose proof (SP (count sc) (fun i => if pops (instr_of i) s && (node (instr_of i) =? node (instr_of j)) then d i else 0) j J) as Q.
  cbn in Q. rewrite P, Nat.eqb_refl in Q. cbn in Q.
  replace (pop_at sc j s) with (sum j (fun i => if pops (instr_of i) s && (node (instr_of i) =? node (instr_of j)) then d i else 0)); [lia|].
  apply sum_ext. intros i I. destruct (pops (instr_of i) s) eqn:PI; auto.
  destruct (Nat.eqb_spec (node (instr_of i)) (node (instr_of j))); auto. cbn.
  apply (v_lane _ _ V j i); auto. apply (e_pop _ E i j s); auto. lia.
Qed.

Lemma reaches : forall d j via s k, inv sc d -> j < count sc -> via < count sc -> pops (instr_of j) s = true ->
  pushes (instr_of via) s = true -> 0 < d j -> k < len (instr_of via) ->
  push_at sc via s + k < pop_at sc j s + d j -> k < d via.
Proof.
  intros d j via s k V J VI P Q D K H. eapply pushed_reaches; eauto.
  pose proof (popped_some d j s V J P D). lia.
Qed.

Lemma carried_sound : forall j via st x b, j < count sc -> via < count sc ->
  (if st : bool then over sc via x else over_at_end sc via x) -> carried j via st = Some b ->
  if b then over sc j x else over_at_end sc j x.
Proof.
  intros j via st x b J VI H C. unfold carried in C.
  assert (BOTH : forall d, inv sc d -> d via = len (instr_of via) -> d x = len (instr_of x)).
  { intros d V D. destruct st; apply H; auto. rewrite D. now apply len_pos. }
  destruct (existsb (Nat.eqb via) (after (instr_of j))) eqn:A.
  { injection C as <-. apply existsb_exists in A as (y & I & Y). apply Nat.eqb_eq in Y. subst y.
    intros d V D. apply BOTH; auto. now apply (v_after _ _ V j via). }
  pose proof (len_pos via VI) as LV. pose proof (len_pos j J) as LJ.
  destruct (existsb (meets_at_start j via st) (streams_of (sinks (instr_of via)))) eqn:M.
  - injection C as <-. apply existsb_exists in M as (s & I & M). apply in_mentions in I.
    unfold meets_at_start in M; cbv zeta in M. rewrite (proj1 (PO via VI) s I) in M. intros d V D.
    apply orb_true_iff in M as [M|M]; repeat (apply andb_true_iff in M as [M ?]); rewrite (proj2 (PO j J) s M) in *.
    + match goal with X : (_ =? _) = true |- _ => apply Nat.eqb_eq in X end. apply BOTH; auto.
      assert (len (instr_of via) - 1 < d via) by (apply (reaches d j via s); auto; lia). pose proof (v_len _ _ V via VI). lia.
    + repeat match goal with X : (_ <=? _) = true |- _ => apply Nat.leb_le in X | X : (_ <? _) = true |- _ => apply Nat.ltb_lt in X end.
      destruct st; [|discriminate]. apply H; auto. assert (0 < d via); [|lia]. apply (reaches d j via s); auto; lia.
  - destruct (existsb (meets_at_end j via st) (streams_of (sinks (instr_of via)))) eqn:N; [|discriminate].
    injection C as <-. apply existsb_exists in N as (s & I & N). apply in_mentions in I.
    unfold meets_at_end in N; cbv zeta in N. rewrite (proj1 (PO via VI) s I) in N. intros d V D.
    apply orb_true_iff in N as [N|N]; repeat (apply andb_true_iff in N as [N ?]); rewrite (proj2 (PO j J) s N) in *.
    + match goal with X : (_ <=? _) = true |- _ => apply Nat.leb_le in X end. apply BOTH; auto.
      assert (len (instr_of via) - 1 < d via) by (apply (reaches d j via s); auto; lia). pose proof (v_len _ _ V via VI). lia.
    + match goal with X : (_ <? _) = true |- _ => apply Nat.ltb_lt in X end.
      destruct st; [|discriminate]. apply H; auto. apply (reaches d j via s); auto; lia.
Qed.

Definition facts_ok (k : knowledge) : Prop :=
  forall n, 0 < n <= nfacts k -> fact_true (get (0, 0, false) (facts k) n).

Lemma derive_sound : forall k j c x b, facts_ok k -> j < count sc -> derive k j c = Some (x, b) -> fact_true (j, x, b).
Proof.
  unfold derive. intros k j c x b FO J D. destruct (Nat.ltb_spec (c_via c) (count sc)) as [VI|]; [|discriminate].
  destruct (base k c) as [[[about y] st]|] eqn:B; [|discriminate].
  destruct (lane (instr_of about) =? lane (instr_of (c_via c))) eqn:L; [|discriminate].
  destruct (Nat.leb_spec about (c_via c)) as [LE|]; [|discriminate]. cbn in D. apply Nat.eqb_eq in L.
  destruct (carried j (c_via c) (st || (about <? c_via c))) as [b'|] eqn:C; [|discriminate].
  injection D as -> ->. assert (T : fact_true (about, x, st)).
  { unfold base in B. destruct (c_fact c) as [n|].
    - destruct ((0 <? n) && (n <=? nfacts k) && negb (c_before c)) eqn:G; [|discriminate].
      injection B as B. rewrite <- B. apply FO. repeat (apply andb_true_iff in G as [G ?]).
      rewrite ?Nat.leb_le, ?Nat.ltb_lt in *. lia.
    - destruct (c_before c).
      + destruct (c_via c) as [|p] eqn:VE; [discriminate|]. destruct (Nat.eqb_spec (lane (instr_of p)) (lane (instr_of (S p)))) as [PL|]; [|discriminate].
        injection B as <- <- <-. split; [auto|]. split; [lia|]. intros d V D. apply (v_lane _ _ V (S p) p); auto.
      + injection B as <- <- <-. split; [auto|]. split; [auto|]. intros d V D. auto. }
  destruct T as (KA & KX & T). split; [auto|]. split; [auto|].
  eapply carried_sound; [auto|exact VI| |exact C]. apply (moved_on about); auto.
Qed.

(** The known facts about a lane hold for its instructions that are not in [pre]. *)
Definition known_ok (pre : list nat) (m : map (map nat)) : Prop :=
  forall a b x, get 0 (get empty m a) b = S x -> x < count sc /\ lane (instr_of x) = b /\
    forall j, j < count sc -> lane (instr_of j) = a -> ~ In j pre -> over sc j x.

Lemma known_learn : forall pre m a x, known_ok pre m -> x < count sc ->
  (forall j, j < count sc -> lane (instr_of j) = a -> ~ In j pre -> over sc j x) -> known_ok pre (learn a x m).
Proof.
  intros pre m a x KO X O a' b y G. unfold learn in G. rewrite get_set in G.
  destruct (Nat.eqb_spec a' a) as [->|N]; [|now apply KO]. rewrite get_set in G.
  destruct (Nat.eqb_spec b (lane (instr_of x))) as [->|N]; [|now apply KO].
  destruct (Nat.max_spec (get 0 (get empty m a) (lane (instr_of x))) (S x)) as [[_ Q]|[_ Q]]; rewrite Q in G.
  - injection G as <-. auto.
  - now apply KO.
Qed.

Lemma known_learn_all : forall pre a xs m, known_ok pre m ->
  (forall x, In x xs -> x < count sc /\ forall j, j < count sc -> lane (instr_of j) = a -> ~ In j pre -> over sc j x) ->
  known_ok pre (learn_all a xs m).
Proof.
  unfold learn_all. induction xs as [|x xs IH]; cbn; intros m KO H; auto. apply IH; auto.
  destruct (H x); auto. now apply known_learn.
Qed.

Lemma take_claims_sound : forall cs pre k j at_end k' at_end', j < count sc ->
  (forall i, i < count sc -> lane (instr_of i) = lane (instr_of j) -> ~ In i pre -> j <= i) ->
  facts_ok k -> known_ok pre (known k) ->
  (forall x, In x at_end -> x < count sc /\ over_at_end sc j x) ->
  take_claims k j cs at_end = Some (k', at_end') ->
  facts_ok k' /\ known_ok pre (known k') /\ seen k' = seen k /\
  (forall x, In x at_end' -> x < count sc /\ over_at_end sc j x).
Proof.
  induction cs as [|c cs IH]; cbn; intros pre k j at_end k' at_end' J LJ FO KO AE T.
  - injection T as <- <-. auto.
  - destruct (derive k j c) as [[x b]|] eqn:D; [|discriminate].
    pose proof (derive_sound _ _ _ _ _ FO J D) as (_ & X & H).
    destruct (IH pre (add_fact k j x b) j (if b then at_end else x :: at_end) k' at_end' J LJ) as (A1 & A2 & A3 & A4); auto.
    + intros n N. cbn [add_fact facts nfacts] in *. rewrite get_set. destruct (Nat.eqb_spec n (S (nfacts k))) as [->|]; [repeat split; auto|].
      apply FO. lia.
    + cbn. destruct b; auto. apply known_learn; auto. intros i I L NI d V DI.
      specialize (LJ i I L NI). destruct (Nat.eq_dec i j) as [->|N]; [now apply H|].
      apply H; auto. rewrite (v_lane _ _ V i j); auto; [now apply len_pos|lia].
    + intros y Y. destruct b; [auto|]. destruct Y as [<-|Y]; auto.
Qed.

Definition covers (r a : access) : Prop :=
  a_lane r = a_lane a /\ a_id a <= a_id r /\ a_id r < count sc /\ lane (instr_of (a_id r)) = a_lane r /\
  a_buf r = a_buf a /\ a_from r <= a_from a /\ a_to a <= a_to r /\ (a_write a = true -> a_write r = true).

Definition seen_ok (pre : list nat) (m : map (list access)) : Prop :=
  forall i a, In i pre -> shared h (node (instr_of i)) = true -> In a (all_accesses i) ->
  exists r, In r (get [] m (node (instr_of i))) /\ covers r a.

Lemma access_fields : forall i w os a, In a (accesses i w os) ->
  a_lane a = lane (instr_of i) /\ a_id a = i /\ a_write a = w /\
  exists s, In (Buf (a_buf a) s) os /\ a_from a = s /\ a_to a = s + len (instr_of i).
Proof.
  induction os as [|[b s|s] os IH]; cbn; intros a I; [contradiction| |].
  - destruct I as [<-|I]; cbn; [repeat split; eauto|]. destruct (IH a I) as (? & ? & ? & t & ? & ?). eauto 10.
  - destruct (IH a I) as (? & ? & ? & t & ? & ?). eauto 10.
Qed.

Lemma all_access_fields : forall i a, In a (all_accesses i) -> a_lane a = lane (instr_of i) /\ a_id a = i.
Proof. intros i a I. apply in_app_or in I as [I|I]; apply access_fields in I; intuition. Qed.

Lemma kept : forall new l a, (exists r, In r l /\ covers r a) -> 
  (forall n, In n new -> a_id n < count sc /\ lane (instr_of (a_id n)) = a_lane n) ->
  exists r, In r (fold_left keep new l) /\ covers r a.
Proof.
  induction new as [|n new IH]; cbn; intros l a (r & I & C) H; [eauto|].
  apply IH; [|intros; apply H; auto]. destruct (replaces n r) eqn:RP.
  - exists n. split; [now left|]. destruct (H n (or_introl eq_refl)) as [HN LN]. unfold replaces in RP.
    repeat (apply andb_true_iff in RP as [RP ?]).
    repeat match goal with X : (_ <=? _) = true |- _ => apply Nat.leb_le in X | X : (_ =? _) = true |- _ => apply Nat.eqb_eq in X end.
    destruct C as (C1 & C2 & C3 & C4 & C5 & C6 & C7 & C8). repeat split; try lia; try congruence.
    intros W. apply C8 in W. match goal with X : (negb _ || _)%bool = true |- _ => now rewrite W in X end.
  - exists r. split; auto. right. apply filter_In. now rewrite RP.
Qed.

Lemma kept_new : forall new l a, In a new ->
  (forall n, In n new -> a_id n < count sc /\ lane (instr_of (a_id n)) = a_lane n) ->
  exists r, In r (fold_left keep new l) /\ covers r a.
Proof.
  induction new as [|n new IH]; cbn; intros l a I H; [contradiction|]. destruct I as [->|I]; [|apply IH; auto].
  apply kept; [|intros; apply H; auto]. exists a. split; [now left|]. destruct (H a (or_introl eq_refl)).
  repeat split; auto.
Qed.

(** A step shows that [j] clashes with no instruction before it in the order, unless that is over when [j] starts. *)
Lemma race_step_sound : forall k pre j post cs k', order = pre ++ j :: post ->
  facts_ok k -> known_ok pre (known k) -> seen_ok pre (seen k) -> race_step k j cs = Some k' ->
  facts_ok k' /\ known_ok (pre ++ [j]) (known k') /\ seen_ok (pre ++ [j]) (seen k') /\
  (shared h (node (instr_of j)) = true -> forall i a b, In i pre -> node (instr_of i) = node (instr_of j) ->
    lane (instr_of i) <> lane (instr_of j) -> In a (all_accesses i) -> In b (all_accesses j) ->
    a_buf a = a_buf b -> a_from a < a_to b -> a_from b < a_to a -> a_write a || a_write b = true -> over sc j i).
Proof.
  intros k pre j post cs k' O FO KO SO H.
  destruct (order_at sc order R len_pos pre j post O) as (J & NI & _ & _ & LP).
  assert (KP : forall i, In i pre -> i < count sc).
  { intros i I. apply in_split in I as (x & y & ->). rewrite <- app_assoc in O.
    apply (order_at sc order R len_pos x i _ O). }
  assert (LJ : forall i, i < count sc -> lane (instr_of i) = lane (instr_of j) -> ~ In i pre -> j <= i).
  { intros i I L N. destruct (Nat.le_gt_cases j i); auto. exfalso. apply N, LP; auto. }
  unfold race_step in H.
  destruct (take_claims _ j cs []) as [[k2 at_end]|] eqn:T; [|discriminate].
  apply take_claims_sound with (pre := pre) in T as (FO2 & KO2 & SE & AE); auto; cbn;
    [|apply known_learn_all; auto|intros ? []].
  2: { intros x X. assert (XK : x < count sc).
    { destruct (order_at sc order R len_pos pre j post O) as (_ & _ & _ & RD & _). now apply (r_after _ _ _ _ RD). }
    split; auto. intros i I L N d V D. apply (LJ i) in N; auto. destruct (Nat.eq_dec i j) as [->|NE].
    - now apply (v_after _ _ V j x).
    - apply (v_after _ _ V j x); auto. rewrite (v_lane _ _ V i j); auto; [now apply len_pos|lia]. }
  cbn in SE.
  destruct (forallb _ _) eqn:CH in H; [|discriminate]. injection H as <-. cbn.
  split; [exact FO2|]. split; [|split].
  - apply known_learn_all.
    + intros a b x G. destruct (KO2 a b x G) as (A1 & A2 & A3). split; auto. split; auto.
      intros i I L N. apply A3; auto. intros C. apply N, in_or_app. now left.
    + intros x X. destruct (AE x X) as [XK OE]. split; auto. intros i I L N d V D. apply OE; auto.
      assert (NP : ~ In i pre) by (intros C; apply N, in_or_app; now left).
      assert (i <> j) by (intros ->; apply N, in_or_app; right; now left).
      pose proof (LJ i I L NP). apply (v_lane _ _ V i j); auto; lia.
  - intros i a I SH IA. rewrite SE. apply in_app_or in I. destruct (shared h (node (instr_of j))) eqn:SJ.
    + rewrite get_set. destruct I as [I|[<-|[]]].
      * destruct (Nat.eqb_spec (node (instr_of i)) (node (instr_of j))) as [EN|]; [|now apply SO].
        apply kept; [|intros n IN; apply all_access_fields in IN as [-> ->]; auto].
        rewrite <- EN. now apply SO.
      * rewrite Nat.eqb_refl. apply kept_new; auto. intros n IN. apply all_access_fields in IN as [-> ->]; auto.
    + destruct I as [I|[<-|[]]]; [now apply SO|congruence].
  - intros SH i a b I EN LN IA IB BU X1 X2 W. rewrite SH, SE in CH. rewrite forallb_forall in CH. specialize (CH b IB).
    destruct (SO i a I) as (r & IR & C); auto; [congruence|]. rewrite EN in IR.
    rewrite forallb_forall in CH. specialize (CH r IR). destruct C as (C1 & C2 & C3 & C4 & C5 & C6 & C7 & C8).
    apply all_access_fields in IA as [LA AI]. apply all_access_fields in IB as [LB BI].
    unfold no_race in CH. repeat (apply orb_true_iff in CH as [CH|CH]).
    + apply Nat.eqb_eq in CH. congruence.
    + apply negb_true_iff, Nat.eqb_neq in CH. congruence.
    + apply Nat.leb_le in CH. lia.
    + apply Nat.leb_le in CH. lia.
    + apply negb_true_iff in CH. apply orb_false_iff in CH as [W1 W2]. apply orb_true_iff in W as [W|W]; [apply C8 in W|]; congruence.
    + apply Nat.ltb_lt in CH. destruct (get 0 (get empty (known k2) (a_lane b)) (a_lane r)) as [|x] eqn:G; [lia|].
      destruct (KO2 _ _ _ G) as (XK & XL & XO). apply (over_later j x); [exact J|apply XO; auto|congruence|lia|exact XK].
Qed.

Lemma run_races_sound : forall steps k pre, order = pre ++ List.map fst steps ->
  facts_ok k -> known_ok pre (known k) -> seen_ok pre (seen k) -> run_races k steps = true ->
  forall pre' j post i a b, order = pre' ++ j :: post -> length pre <= length pre' -> In i pre' ->
    shared h (node (instr_of j)) = true -> node (instr_of i) = node (instr_of j) ->
    lane (instr_of i) <> lane (instr_of j) -> In a (all_accesses i) -> In b (all_accesses j) ->
    a_buf a = a_buf b -> a_from a < a_to b -> a_from b < a_to a -> a_write a || a_write b = true -> over sc j i.
Proof.
  induction steps as [|[j cs] steps IH]; cbn; intros k pre O FO KO SO H pre' j' post i a b O' LE.
  - exfalso. rewrite app_nil_r in O. assert (X : length order = length order) by auto.
    rewrite O in X at 1. rewrite O', app_length in X. cbn in X. lia.
  - destruct (race_step k j cs) as [k'|] eqn:RS; [|discriminate].
    destruct (race_step_sound k pre j (List.map fst steps) cs k' O FO KO SO RS) as (FO' & KO' & SO' & NOW).
    destruct (Nat.eq_dec (length pre) (length pre')) as [EL|NL].
    + rewrite O in O'. assert (pre = pre') as <-.
      { clear -EL O'. revert pre' EL O'. induction pre as [|x p IHp]; intros [|y q] EL O'; cbn in *; try lia; auto.
        injection O' as -> O'. f_equal. apply IHp; auto. }
      apply app_inv_head in O'. injection O' as <- _. intros. eapply NOW; eauto.
    + eapply (IH k' (pre ++ [j])); eauto; [now rewrite <- app_assoc|]. rewrite app_length. cbn. lia.
Qed.

End Sound.

Lemma touches_access : forall i w os b x k s, In (Buf b s) os -> x = s + k -> k < len (instr_of i) ->
  exists a, In a (accesses i w os) /\ a_buf a = b /\ a_from a <= x < a_to a /\ a_write a = w.
Proof.
  induction os as [|[c t|t] os IH]; cbn; intros b x k s I X K; [contradiction| |].
  - destruct I as [I|I].
    + injection I as -> ->. eexists. split; [left; reflexivity|]. cbn. repeat split; lia.
    + destruct (IH b x k s I X K) as (a & A & ?). exists a. auto.
  - destruct I as [I|I]; [discriminate|]. eapply IH; eauto.
Qed.

Lemma reads_access : forall i n b x, reads sc i (PBuf n b x) ->
  node (instr_of i) = n /\ exists a, In a (all_accesses i) /\ a_buf a = b /\ a_from a <= x < a_to a.
Proof.
  intros i n b x (k & [c s|s] & K & I & P); cbn in P; [|discriminate]. injection P as <- <- PX. split; auto.
  destruct (touches_access i false _ c x k s I ltac:(lia) K) as (a & A & ? & ? & _). exists a. split; auto.
  apply in_or_app. auto.
Qed.

Lemma writes_access : forall i n b x, writes sc i (PBuf n b x) ->
  node (instr_of i) = n /\ exists a, In a (all_accesses i) /\ a_buf a = b /\ a_from a <= x < a_to a /\ a_write a = true.
Proof.
  intros i n b x (k & [c s|s] & K & I & P); cbn in P; [|discriminate]. injection P as <- <- PX. split; auto.
  destruct (touches_access i true _ c x k s I ltac:(lia) K) as (a & A & ? & ? & ?). exists a. split; auto.
  apply in_or_app. auto.
Qed.

Theorem check_races_sound : forall n steps, check_order sc h n (List.map fst steps) = true -> check_races steps = true ->
  aligned sc /\ race_free sc (List.map fst steps).
Proof.
  intros n steps CO CR. destruct (check_order_sound _ _ _ _ CO) as [E R].
  pose proof (check_order_form _ _ _ _ CO) as F. pose proof (check_order_positions _ _ _ _ CO) as PO.
  unfold check_races in CR. apply andb_true_iff in CR as [SL CR]. split.
  - intros i o p K IO IP. pose proof (all_below_spec _ _ SL i K) as S. unfold slices_ok in S.
    rewrite forallb_forall in S. specialize (S o IO). rewrite forallb_forall in S. specialize (S p IP).
    destruct o as [b x|]; destruct p as [c y|]; cbn; auto. intros <-. rewrite Nat.eqb_refl in S. cbn in S.
    repeat (apply orb_true_iff in S as [S|S]); rewrite ?Nat.eqb_eq, ?Nat.leb_le in S; auto.
  - intros pre j post i O I LN EN (p & M & C).
    destruct (order_at sc _ R (len_pos F) pre j post O) as (J & _).
    assert (IK : i < count sc).
    { apply in_split in I as (x & y & ->). rewrite <- app_assoc in O. apply (order_at sc _ R (len_pos F) x i _ O). }
    destruct p as [q b x|]; [|contradiction].
    assert (SH : shared h (node (instr_of j)) = true).
    { destruct (form_fields _ _ F j J) as (_ & _ & _ & _ & _ & _ & [S|S]); auto.
      destruct (form_fields _ _ F i IK) as (_ & _ & _ & _ & _ & _ & [T|T]); congruence. }
    assert (G : forall a c, In a (all_accesses i) -> In c (all_accesses j) -> a_buf a = a_buf c ->
      a_from a < a_to c -> a_from c < a_to a -> a_write a || a_write c = true -> over sc j i).
    { intros a c IA IC B X Y W. eapply (run_races_sound (List.map fst steps) E R F PO steps
        {| known := empty; nfacts := 0; facts := empty; seen := empty |} [] eq_refl) with (pre' := pre); eauto.
      - intros m N. cbn in N. lia.
      - intros a' b' x' G. cbn in G. now rewrite !get_empty in G.
      - intros i' a' [].
      - cbn. lia. }
    destruct C as [[W [D|W2]]|[D W]].
    + apply writes_access in W as (_ & a & ? & ? & ? & ?). apply reads_access in D as (_ & c & ? & ? & ?).
      apply (G a c); auto; try congruence; try lia. match goal with X : a_write a = true |- _ => now rewrite X end.
    + apply writes_access in W as (_ & a & ? & ? & ? & ?). apply writes_access in W2 as (_ & c & ? & ? & ? & ?).
      apply (G a c); auto; try congruence; try lia. match goal with X : a_write a = true |- _ => now rewrite X end.
    + apply reads_access in D as (_ & a & ? & ? & ?). apply writes_access in W as (_ & c & ? & ? & ? & ?).
      apply (G a c); auto; try congruence; try lia. match goal with X : a_write c = true |- _ => rewrite X end.
      apply orb_true_r.
Qed.

End Race.
