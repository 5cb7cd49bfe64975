(** The ring, for every number of ranks: allgather, reduce-scatter and allreduce as
    crates/algorithms/src/catalog/ring.rs makes them, for vectors of any length. *)
From Unisono Require Import Families.

(** * Ranks around the ring *)
Section Around.
Variable P : nat.
Hypothesis P2 : 2 <= P.

(** The neighbours of a rank, before and after it. *)
Definition pred (q : nat) : nat := match q with 0 => P - 1 | S p => p end.
Definition next (q : nat) : nat := if S q =? P then 0 else S q.

Lemma pred_lt : forall q, q < P -> pred q < P.
Proof. intros [|q] H; cbn; lia. Qed.
Fixpoint back (q t : nat) : nat := match t with 0 => q | S u => back (pred q) u end.

Lemma back_lt : forall t q, q < P -> back q t < P.
Proof. induction t; cbn; intros; auto using pred_lt. Qed.

Lemma back_add : forall a b q, back q (a + b) = back (back q a) b.
Proof. induction a; cbn; auto. Qed.

Lemma back_near : forall t q, t <= q -> back q t = q - t.
Proof. induction t; cbn; intros q B; [lia|]. destruct q; [lia|]. cbn. rewrite IHt; lia. Qed.

Lemma back_far : forall t q, q < P -> q < t <= P + q -> back q t = P + q - t.
Proof.
  intros t q Q B. replace t with (q + (1 + (t - q - 1))) by lia. rewrite back_add, (back_near q q) by lia.
  rewrite Nat.sub_diag. cbn. rewrite back_near by lia. lia.
Qed.

Lemma back_P : forall q, q < P -> back q P = q.
Proof. intros. rewrite back_far; lia. Qed.

Lemma back_inj : forall q t u, q < P -> t < P -> u < P -> back q t = back q u -> t = u.
Proof.
  intros q t u Q A B E.
  destruct (Nat.le_gt_cases t q), (Nat.le_gt_cases u q);
    rewrite ?(back_near t), ?(back_near u), ?(back_far t), ?(back_far u) in E by lia; lia.
Qed.

Lemma back_onto : forall q b, q < P -> b < P -> exists t, t < P /\ back q t = b.
Proof.
  intros q b Q B. destruct (Nat.le_gt_cases b q).
  - exists (q - b). rewrite back_near by lia. lia.
  - exists (P + q - b). rewrite back_far by lia. lia.
Qed.

(** The ranks whose contributions a block has when instruction [t] of rank [q] has added its own. *)
Fixpoint gathered (q t : nat) : list nat := match t with 0 => [q] | S u => gathered (pred q) u ++ [q] end.

Lemma gathered_near : forall t q, t <= q -> gathered q t = seq (q - t) (S t).
Proof.
  induction t; intros q B; cbn [gathered]; [now rewrite Nat.sub_0_r|]. destruct q; [lia|]. cbn [pred].
  rewrite IHt by lia. rewrite (seq_S (S t)). replace (S q - S t) with (q - t) by lia. f_equal. f_equal. lia.
Qed.

Lemma gathered_far : forall q t, q < t -> t < P -> gathered q t = seq (P + q - t) (t - q) ++ seq 0 (S q).
Proof.
  induction q; intros t B C; destruct t as [|t]; try lia; cbn [gathered pred].
  - rewrite gathered_near by lia. replace (P + 0 - S t) with (P - 1 - t) by lia. now rewrite Nat.sub_0_r.
  - rewrite IHq by lia. rewrite (seq_S (S q)), app_assoc. f_equal. f_equal. f_equal; lia.
Qed.

Lemma gathered_all : forall q, q < P -> Permutation (gathered q (P - 1)) (seq 0 P).
Proof.
  intros q Q. destruct (Nat.eq_dec q (P - 1)) as [->|N].
  - rewrite gathered_near by lia. replace (P - 1 - (P - 1)) with 0 by lia. now replace (S (P - 1)) with P by lia.
  - rewrite gathered_far by lia. replace (P + q - (P - 1)) with (S q) by lia.
    replace (seq 0 P) with (seq 0 (S q) ++ seq (S q) (P - 1 - q)); [apply Permutation_app_comm|].
    rewrite <- (seq_app (S q)). f_equal. lia.
Qed.

End Around.

(** * Rings in general *)
Section Ring.
(** [P] ranks of [T] instructions each; the length, the first element read and the first element written of each. *)
Variables P T : nat.
Variable L : nat -> nat -> nat.
Variables src out : nat -> nat -> option nat.

Notation pred := (pred P).
Notation next := (next P).

Definition slice (b : nat) (o : option nat) : list operand := match o with Some s => [Buf b s] | None => [] end.

Definition ring_row (q t _ : nat) : slot :=
  {| size := L q t; from := (if t =? 0 then [] else [Str (pred q)]) ++ slice 0 (src q t);
     into := slice 1 (out q t) ++ (if S t =? T then [] else [Str q]) |}.
Definition ring_ports (s : nat) : nat * nat := (s, next s).
Definition ring : schedule := rows P T 1 ring_row ring_ports.

(** The expression of element [k] of instruction [t] of rank [q]. *)
Fixpoint W (q t k : nat) : tree :=
  match t with
  | 0 => match src q 0 with Some a => Leaf q (a + k) | None => Leaf 0 0 end
  | S u => match src q t with Some a => Node (W (pred q) u k) (Leaf q (a + k)) | None => W (pred q) u k end
  end.

Variable c : collective.
Variable scratch : nat -> nat.
Hypothesis P2 : 2 <= P.
Hypothesis L_pred : forall q t, q < P -> S t < T -> L q (S t) = L (pred q) t.
Hypothesis src_first : forall q, q < P -> src q 0 <> None.
Hypothesis src_fits : forall q t a, q < P -> t < T -> src q t = Some a -> a + L q t <= input_size c q.
Hypothesis out_fits : forall q t a, q < P -> t < T -> out q t = Some a -> a + L q t <= output_size c q.
Hypothesis out_once : forall q t u a b k l, q < P -> t < T -> u < T -> out q t = Some a -> out q u = Some b ->
  k < L q t -> l < L q u -> a + k = b + l -> t = u.

Lemma in_slice : forall b s b' o, In (Buf b s) (slice b' o) <-> b = b' /\ o = Some s.
Proof. intros b s b' [a|]; cbn; [|intuition discriminate]. split; [intros [H|[]]; injection H as <- <-;
  auto|intros [-> H]; left; congruence]. Qed.
Lemma not_in_slice : forall s b o, ~ In (Str s) (slice b o).
Proof. intros s b [a|]; cbn; [intros [H|[]]; discriminate|auto]. Qed.

Lemma ring_pushes : forall q t m s, mentions (into (ring_row q t m)) s = true <-> s = q /\ S t <> T.
Proof.
  intros q t m s. rewrite <- in_streams. cbn [into ring_row]. rewrite in_app_iff.
  destruct (Nat.eqb_spec (S t) T); cbn; split; try tauto.
  - intros [H|[]]. now apply not_in_slice in H.
  - intros [H|[H|[]]]; [now apply not_in_slice in H|]. injection H as <-. auto.
  - intros [-> _]. auto.
Qed.

Lemma ring_pops : forall q t m s, mentions (from (ring_row q t m)) s = true <-> s = pred q /\ t <> 0.
Proof.
  intros q t m s. rewrite <- in_streams. cbn [from ring_row]. rewrite in_app_iff.
  destruct (Nat.eqb_spec t 0); cbn; split; try tauto.
  - intros [[]|H]. now apply not_in_slice in H.
  - intros [[H|[]]|H]; [|now apply not_in_slice in H]. injection H as <-. auto.
  - intros [-> _]. auto.
Qed.

Lemma ring_sink : forall q t m b s, In (Buf b s) (into (ring_row q t m)) <-> b = 1 /\ out q t = Some s.
Proof.
  intros q t m b s. cbn [into ring_row]. rewrite in_app_iff, in_slice. destruct (S t =? T); cbn; [tauto|].
  split; [intros [H|[H|[]]]; [auto|discriminate]|auto].
Qed.

Lemma ring_source : forall q t m b s, In (Buf b s) (from (ring_row q t m)) <-> b = 0 /\ src q t = Some s.
Proof.
  intros q t m b s. cbn [from ring_row]. rewrite in_app_iff, in_slice. destruct (t =? 0); cbn; [tauto|].
  split; [intros [[H|[]]|H]; [discriminate|auto]|auto].
Qed.

Definition V (q t _ k : nat) : tree := W q t k.

Lemma ring_in_rows : in_rows P T 1 ring_row ring_ports c scratch V (fun _ t _ s k => W s (t - 1) k) (fun _ t _ => t).
Proof.
  constructor.
  - intros q t m b s Q B _ I. cbn [size ring_row]. apply in_app_or in I as [I|I].
    + apply ring_source in I as [-> I]. now apply src_fits.
    + apply ring_sink in I as [-> I]. now apply out_fits.
  - intros q t m s _ _ _ I. apply ring_sink in I. lia.
  - intros q t m [b s|s] [b' s'|s'] _ _ _ IO IP; try exact Logic.I. intros <-. left. apply ring_sink in IO as [-> IO].
    apply in_app_or in IP as [IP|IP]; [apply ring_sink in IP as [_ IP]; congruence|apply ring_source in IP; lia].
  - intros q t m q' t' m' s _ _ M _ _ M' X Y. apply ring_pushes in X as [-> _], Y as [-> _]. split; auto. lia.
  - intros q t m t' m' s _ _ M _ M' _ _. lia.
  - intros q t m s Q B M X. apply ring_pops in X as [-> NZ]. destruct t as [|t]; [lia|]. pose proof (pred_lt P P2 q Q).
    exists (pred q), t, m. replace (S t - 1) with t by lia. split; auto. split; [lia|]. split; auto.
    split; [apply ring_pushes; split; auto; lia|]. cbn [size ring_row].
    split; [|split; [symmetry; now apply L_pred|auto]].
    change (S t) with (1 + t). rewrite sum_split. cbn [sum]. unfold popped_by at 1.
    destruct (mentions (from (ring_row q 0 m)) (pred q)) eqn:E; [apply ring_pops in E; lia|]. cbn [Nat.add].
    apply sum_ext. intros u U.
    unfold pushed_by, popped_by. rewrite (proj2 (ring_pushes (pred q) u m (pred q))),
    (proj2 (ring_pops q (S u) m (pred q))) by (split; auto; lia).
    cbn [size ring_row]. symmetry. apply L_pred; auto. lia.
  - intros q t m t' m' _ _ M M' E. unfold earlier in E. lia.
  - intros q t m k Q B M K. cbn [from size ring_row] in *. change (V q t m k) with (W q t k).
    assert (IN : forall a, src q t = Some a -> source_at P T 1 ring_row ring_ports c V (fun _ t _ s k => W s (t - 1) k)
    q t m k (Buf 0 a) =
      Some (Leaf q (a + k))).
    { intros a I. cbn [source_at]. rewrite held_input; auto; [|intros t' m' s _ _ X; apply ring_sink in X; lia]. cbn.
      pose proof (src_fits q t a Q B I). destruct (Nat.ltb_spec (a + k) (input_size c q)); [reflexivity|lia]. }
    destruct t as [|t].
    + pose proof (src_first q Q). cbn [W]. destruct (src q 0) as [a|] eqn:S0; [|congruence]. cbn [slice].
      change (0 =? 0) with true. cbn [app map].
      rewrite (IN a eq_refl). reflexivity.
    + change (S t =? 0) with false. cbn [app map W]. cbn [source_at]. replace (S t - 1) with t by lia.
      destruct (src q (S t)) as [a|] eqn:S0; cbn [slice map]; [|reflexivity]. rewrite (IN a eq_refl). reflexivity.
Qed.

Definition ring_flow := rows_flow _ _ _ _ _ _ _ _ _ _ ring_in_rows.

(** The output of rank [q] holds the value [W q t] of each step [t] at the place of that step. *)
Lemma ring_output : forall st q t a k, reach ring (inputs c) st -> final ring st -> q < P -> t < T ->
  out q t = Some a -> k < L q t -> mem st (PBuf q 1 (a + k)) = Some (W q t k).
Proof.
  intros st q t a k H F Q B O KL. rewrite (final_contents _ _ _ _ _ _ ring_flow) by auto. unfold ring.
  rewrite (last_written P T 1 ring_row ring_ports c V _ q t 0); auto.
  - apply index_lt; auto.
  - intros s I. apply ring_sink in I as [_ I]. congruence.
  - now apply ring_sink.
  - intros t' m' T' M' E _ s I. apply ring_sink in I as [_ I]. cbn [size ring_row].
    destruct (Nat.lt_ge_cases (a + k) s); auto. right. destruct (Nat.lt_ge_cases (a + k) (s + L q t')); [|lia]. exfalso.
    pose proof (out_once q t t' a s k (a + k - s) Q B T' O I KL ltac:(lia) ltac:(lia)). unfold earlier in E. lia.
Qed.

End Ring.

(** * Allgather *)
Definition ring_allgather (P n : nat) : schedule :=
  ring P P (fun _ _ => n) (fun _ t => if t =? 0 then Some 0 else None) (fun q t => Some (back P q t * n)).

Theorem ring_allgather_correct : forall P n o, 2 <= P ->
  forall scratch, correct (ring_allgather P n) {| what := Allgather; ranks := P; elems := n; root := 0;
    ordered := o |} scratch.
Proof.
  intros P n o P2 scratch. set (c := {| what := Allgather; ranks := P; elems := n; root := 0; ordered := o |}).
  assert (IN : forall q, q < P -> input_size c q = n) by (intros q; apply (sizes_of c)).
  assert (OUT : forall q, q < P -> output_size c q = n * P) by (intros q; apply (sizes_of c)).
  assert (S1 : forall q, q < P -> (if 0 =? 0 then Some 0 else None) <> None) by discriminate.
  assert (S2 : forall q t a, q < P -> t < P -> (if t =? 0 then Some 0 else None) = Some a -> a + n <= input_size c q).
  { intros q t a Q B H. rewrite IN by auto. destruct (t =? 0); [injection H as <-; lia|discriminate]. }
  assert (S3 : forall q t a, q < P -> t < P -> Some (back P q t * n) = Some a -> a + n <= output_size c q).
  { intros q t a Q B H. injection H as <-. rewrite OUT by auto. pose proof (back_lt P P2 t q Q). nia. }
  assert (S4 : forall q t u a b k l, q < P -> t < P -> u < P -> Some (back P q t * n) = Some a -> Some (back P q u * n)
  = Some b ->
    k < n -> l < n -> a + k = b + l -> t = u).
  { intros q t u a b k l Q BT BU HA HB KN LN E. injection HA as <-. injection HB as <-.
    apply (back_inj P P2 q); auto. nia. }
  assert (V : forall q t k, q < P -> W P (fun _ t => if t =? 0 then Some 0 else None) q t k = Leaf (back P q t) k).
  { intros q t. revert q. induction t; intros q k Q; cbn; auto. apply IHt. now apply (pred_lt P P2). }
  pose proof (ring_flow P P (fun _ _ => n) _ _ c scratch P2 (fun _ _ _ _ => eq_refl) S1 S2 S3) as DF.
  unfold ring_allgather. apply (flow_correct _ _ _ _ _ _ DF).
  intros st H F r d k R DI KL. unfold required in DI. rewrite OUT in DI by auto.
  destruct (n * P) as [|x] eqn:NP; [contradiction|]. cbn in DI. apply in_map_iff in DI as (b & <- & B).
  apply in_seq in B. cbn in *. destruct (back_onto P P2 r b R ltac:(lia)) as (t & TP & BE).
  exists (Leaf b k). split; [|destruct o; reflexivity].
  pose proof (ring_output P P (fun _ _ => n) _ _ c scratch P2 (fun _ _ _ _ => eq_refl) S1 S2 S3 S4 st r t (back P r t *
  n) k H F R TP eq_refl KL) as M.
  rewrite V, BE in M by auto. exact M.
Qed.

(** * Reduce-scatter *)
Definition ring_reduce_scatter (P n : nat) : schedule :=
  ring P P (fun _ _ => n) (fun q t => Some (back P q (S t) * n)) (fun _ t => if S t =? P then Some 0 else None).

(** The contributions of a block, from the first rank that sent it on. *)
Lemma leaves_gathered : forall P start src t q k, 2 <= P -> q < P ->
  (forall p u, p < P -> u <= t -> src p u = Some (start (back P p (S u)))) ->
  leaves (W P src q t k) = contributions (start (back P q (S t)) + k) (gathered P q t).
Proof.
  intros P start src. induction t; intros q k P2 Q S; cbn [W gathered].
  - rewrite S by lia. reflexivity.
  - rewrite S by lia. cbn [leaves]. rewrite IHt; auto; [|now apply (pred_lt P P2)].
    unfold contributions. rewrite map_app. reflexivity.
Qed.

Theorem ring_reduce_scatter_correct : forall P n, 2 <= P ->
  forall scratch, correct (ring_reduce_scatter P n)
    {| what := ReduceScatter; ranks := P; elems := n; root := 0; ordered := false |} scratch.
Proof.
  intros P n P2 scratch. set (c := {| what := ReduceScatter; ranks := P; elems := n; root := 0; ordered := false |}).
  assert (IN : forall q, q < P -> input_size c q = n * P) by (intros q; apply (sizes_of c)).
  assert (OUT : forall q, q < P -> output_size c q = n) by (intros q; apply (sizes_of c)).
  set (src := fun q t => Some (back P q (S t) * n)). set (out := fun (_ t : nat) => if S t =? P then Some 0 else None).
  assert (S1 : forall q, q < P -> src q 0 <> None) by discriminate.
  assert (S2 : forall q t a, q < P -> t < P -> src q t = Some a -> a + n <= input_size c q).
  { intros q t a Q B H. injection H as <-. rewrite IN by auto. pose proof (back_lt P P2 t (pred P q) (pred_lt P P2 q
    Q)). nia. }
  assert (S3 : forall q t a, q < P -> t < P -> out q t = Some a -> a + n <= output_size c q).
  { intros q t a Q B H. rewrite OUT by auto. unfold out in H. destruct (S t =? P); [injection H as <-;
    lia|discriminate]. }
  assert (S4 : forall q t u a b k l, q < P -> t < P -> u < P -> out q t = Some a -> out q u = Some b ->
    k < n -> l < n -> a + k = b + l -> t = u).
  { intros q t u a b k l _ _ _ HA HB _ _ _. unfold out in *. destruct (Nat.eqb_spec (S t) P), (Nat.eqb_spec (S u) P);
    try discriminate. lia. }
  unfold ring_reduce_scatter. fold src. fold out.
  pose proof (ring_flow P P (fun _ _ => n) src out c scratch P2 (fun _ _ _ _ => eq_refl) S1 S2 S3) as DF.
  apply (flow_correct _ _ _ _ _ _ DF).
  intros st H F r d k R DI KL. unfold required in DI. rewrite OUT in DI by auto.
  destruct n as [|n']; [contradiction|]. cbn in DI. destruct DI as [<-|[]].
  cbn [d_from d_len d_element d_first d_ranks] in *.
  set (n := S n') in *.
  pose proof (ring_output P P (fun _ _ => n) _ _ c scratch P2 (fun _ _ _ _ => eq_refl) S1 S2 S3 S4 st r (P - 1) 0 k H F
  R ltac:(lia)) as M.
  assert (O : out r (P - 1) = Some 0) by (unfold out; now replace (S (P - 1) =? P) with true by (symmetry;
  apply Nat.eqb_eq; lia)).
  eexists. split; [apply (M O KL)|]. unfold alike. cbn [what ordered].
  rewrite (leaves_gathered P (fun b => b * n) src); auto.
  replace (S (P - 1)) with P by lia. rewrite back_P by auto.
  apply Permutation_map, gathered_all; auto.
Qed.

(** * Allreduce *)
Definition blocks (P n b : nat) : nat := b * (n / P) + Nat.min b (n mod P).

Lemma blocks_ascending : forall P n, ascending (blocks P n).
Proof. intros P n a b B. unfold blocks. apply Nat.add_le_mono; [now apply Nat.mul_le_mono_r|lia]. Qed.

Lemma blocks_end : forall P n, P <> 0 -> blocks P n P = n.
Proof.
  intros P n Z. unfold blocks. pose proof (Nat.div_mod n P Z). pose proof (Nat.mod_upper_bound n P Z). lia.
Qed.

Section Allreduce.
Variables P n : nat.
Hypothesis P2 : 2 <= P.
Notation start := (blocks P n).
Notation back := (back P).

Definition reduced (q t : nat) : option nat := if t <? P then Some (start (back q (S t))) else None.
Definition spread (q t : nat) : option nat := if P <=? S t then Some (start (back q (S t))) else None.
Definition lengths (q t : nat) : nat := start (S (back q (S t))) - start (back q (S t)).
Definition ring_allreduce : schedule := ring P (2 * P - 1) lengths reduced spread.
Definition arc : collective := {| what := Allreduce; ranks := P; elems := n; root := 0; ordered := false |}.

Variable scratch : nat -> nat.

Lemma block_fits : forall q t, q < P -> start (back q (S t)) + lengths q t <= n.
Proof.
  intros q t Q. unfold lengths. pose proof (back_lt P P2 (S t) q Q) as B. pose proof (blocks_ascending P n) as A.
  pose proof (blocks_end P n ltac:(lia)). pose proof (A (S (back q (S t))) P ltac:(lia)).
  pose proof (A (back q (S t)) (S (back q (S t))) ltac:(lia)). lia.
Qed.

Lemma reduced_first : forall q, q < P -> reduced q 0 <> None.
Proof. intros q Q. unfold reduced. destruct (Nat.ltb_spec 0 P); [discriminate|lia]. Qed.

Lemma reduced_fits : forall q t a, q < P -> t < 2 * P - 1 -> reduced q t = Some a -> a + lengths q t <= input_size arc q.
Proof.
  intros q t a Q _ H. rewrite (proj1 (sizes_of arc q Q)). unfold reduced in H. destruct (t <? P); [|discriminate].
  assert (a = start (back q (S t))) as -> by congruence. now apply block_fits.
Qed.

Lemma spread_fits : forall q t a, q < P -> t < 2 * P - 1 -> spread q t = Some a -> a + lengths q t <= output_size arc q.
Proof.
  intros q t a Q _ H. rewrite (proj2 (sizes_of arc q Q)). unfold spread in H. destruct (P <=? S t); [|discriminate].
  assert (a = start (back q (S t))) as -> by congruence. now apply block_fits.
Qed.

Lemma back_late : forall q u, q < P -> back q (S (P - 1 + u)) = back q u.
Proof. intros q u Q. replace (S (P - 1 + u)) with (P + u) by lia. now rewrite back_add, back_P by auto. Qed.

Lemma spread_once : forall q t u a b k l, q < P -> t < 2 * P - 1 -> u < 2 * P - 1 -> spread q t = Some a ->
  spread q u = Some b -> k < lengths q t -> l < lengths q u -> a + k = b + l -> t = u.
Proof.
  intros q t u a b k l Q BT BU HA HB KL LL E. unfold spread in *.
  destruct (Nat.leb_spec P (S t)); [|discriminate]. destruct (Nat.leb_spec P (S u)); [|discriminate].
  assert (a = start (back q (S t))) as -> by congruence. assert (b = start (back q (S u))) as -> by congruence.
  unfold lengths in *. assert (BE : back q (S t) = back q (S u)).
  { apply (block_once start _ _ (start (back q (S t)) + k)); try apply blocks_ascending; lia. }
  replace t with (P - 1 + (t - (P - 1))) in BE by lia. replace u with (P - 1 + (u - (P - 1))) in BE by lia.
  rewrite !back_late in BE by auto. apply (back_inj P P2 q) in BE; auto; lia.
Qed.

(** After the reduction a value only travels. *)
Lemma travels : forall u q e, q < P -> W P reduced q (P - 1 + u) e = W P reduced (back q u) (P - 1) e.
Proof.
  induction u; intros q e Q; [now rewrite Nat.add_0_r|].
  replace (P - 1 + S u) with (S (P - 1 + u)) by lia. cbn [W]. unfold reduced at 1.
  destruct (Nat.ltb_spec (S (P - 1 + u)) P); [lia|]. change (back q (S u)) with (back (pred P q) u). apply IHu. now apply (pred_lt P P2).
Qed.

Lemma lengths_pred : forall q t, q < P -> S t < 2 * P - 1 -> lengths q (S t) = lengths (pred P q) t.
Proof. reflexivity. Qed.

(** The contents of an output depend on the block alone. *)
Lemma ring_allreduce_output : forall st r b k, reach ring_allreduce (inputs arc) st -> final ring_allreduce st -> r < P ->
  b < P -> start b <= k < start (S b) -> mem st (PBuf r 1 k) = Some (W P reduced b (P - 1) (k - start b)).
Proof.
  intros st r b k H F R B RNG. destruct (back_onto P P2 r b R B) as (u & U & BE).
  assert (O : spread r (P - 1 + u) = Some (start b)).
  { unfold spread. rewrite back_late, BE by auto. destruct (Nat.leb_spec P (S (P - 1 + u))); [auto|lia]. }
  assert (LE : lengths r (P - 1 + u) = start (S b) - start b) by (unfold lengths; now rewrite back_late, BE by auto).
  pose proof (ring_output P (2 * P - 1) lengths reduced spread arc scratch P2 lengths_pred reduced_first reduced_fits
    spread_fits spread_once st r (P - 1 + u) (start b) (k - start b) H F R ltac:(lia) O ltac:(lia)) as M.
  replace (start b + (k - start b)) with k in M by lia. now rewrite travels, BE in M by auto.
Qed.

Theorem ring_allreduce_correct : correct ring_allreduce arc scratch.
Proof.
  pose proof (ring_flow P (2 * P - 1) lengths reduced spread arc scratch P2 lengths_pred reduced_first reduced_fits
    spread_fits) as DF. apply (flow_correct _ _ _ _ _ _ DF).
  intros st H F r d k R DI KL. unfold required in DI. rewrite (proj2 (sizes_of arc r R)) in DI. cbn in DI.
  one_demand d k n {| d_from := 0; d_len := n; d_element := 0; d_first := 0; d_ranks := P |} DI KL.
  destruct (block_of start P k (blocks_ascending P n)) as (b & B & RNG); [cbn; lia|rewrite blocks_end; lia|].
  eexists. split; [now apply (ring_allreduce_output st r b k)|]. unfold alike. cbn [what ordered arc].
  rewrite (leaves_gathered P start reduced); auto.
  - replace (S (P - 1)) with P by lia. rewrite back_P by auto. replace (start b + (k - start b)) with k by lia.
    apply Permutation_map, gathered_all; auto.
  - intros p v PP VV. unfold reduced. destruct (Nat.ltb_spec v P); [auto|lia].
Qed.

(** Results have the same bits on all ranks: each rank evaluates one expression. *)
Theorem ring_allreduce_repeatable : forall st, reach ring_allreduce (inputs arc) st -> final ring_allreduce st ->
  forall r s k, r < P -> s < P -> k < n -> mem st (PBuf r 1 k) = mem st (PBuf s 1 k).
Proof.
  intros st H F r s k R S K.
  destruct (block_of start P k (blocks_ascending P n)) as (b & B & RNG); [cbn; lia|rewrite blocks_end; lia|].
  now rewrite !(ring_allreduce_output st _ b).
Qed.

End Allreduce.
