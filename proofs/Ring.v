(** The ring, for every number of ranks: allgather, reduce-scatter and allreduce as crates/algorithms/src/catalog/ring.rs
    makes them, for vectors of any length. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Unisono Require Import Model Order Determined Collective Checker Dataflow.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments Nat.eqb : simpl never.
#[local] Arguments Nat.div : simpl never.
#[local] Arguments Nat.modulo : simpl never.

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

Definition ring_instr (i : nat) : instr :=
  let q := i / T in let t := i mod T in
  {| node := q; lane := q; len := L q t;
     sources := (if t =? 0 then [] else [Str (pred q)]) ++ slice 0 (src q t);
     sinks := slice 1 (out q t) ++ (if S t =? T then [] else [Str q]); after := [] |}.

Definition ring : schedule :=
  {| count := P * T; ins := ring_instr;
     streams := fun s => {| origin := s; readers := [next s]; capacity := None |} |}.

(** The expression of element [k] of instruction [t] of rank [q]. *)
Fixpoint W (q t k : nat) : tree :=
  match t with
  | 0 => match src q 0 with Some a => Leaf q (a + k) | None => Leaf 0 0 end
  | S u => match src q t with Some a => Node (W (pred q) u k) (Leaf q (a + k)) | None => W (pred q) u k end
  end.

Variable c : collective.
Hypothesis P2 : 2 <= P.
Hypothesis T1 : 1 <= T.
Hypothesis L_pred : forall q t, q < P -> S t < T -> L q (S t) = L (pred q) t.
Hypothesis src_first : forall q, q < P -> src q 0 <> None.
Hypothesis src_fits : forall q t a, q < P -> t < T -> src q t = Some a -> a + L q t <= input_size c q.
Hypothesis out_fits : forall q t a, q < P -> t < T -> out q t = Some a -> a + L q t <= output_size c q.
Hypothesis out_once : forall q t u a b k l, q < P -> t < T -> u < T -> out q t = Some a -> out q u = Some b ->
  k < L q t -> l < L q u -> a + k = b + l -> t = u.

Lemma place_div : forall q t, t < T -> (q * T + t) / T = q.
Proof. intros. rewrite Nat.add_comm, Nat.div_add, Nat.div_small by lia. lia. Qed.
Lemma place_mod : forall q t, t < T -> (q * T + t) mod T = t.
Proof. intros. rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. lia. Qed.
Lemma place_eq : forall i, i = i / T * T + i mod T.
Proof. intros. rewrite Nat.mul_comm. apply Nat.div_mod. lia. Qed.
Lemma place_lt : forall i, i < P * T -> i / T < P /\ i mod T < T.
Proof. intros. split; [apply Nat.div_lt_upper_bound; lia|apply Nat.mod_upper_bound; lia]. Qed.
Notation pred_lt := (pred_lt P P2).

Lemma ring_pushes : forall i s, pushes (ring_instr i) s = (s =? i / T) && negb (S (i mod T) =? T).
Proof.
  intros. unfold pushes, mentions, ring_instr. cbn [sinks].
  destruct (out (i / T) (i mod T)); destruct (S (i mod T) =? T); cbn; now rewrite ?andb_false_r, ?andb_true_r, ?orb_false_r.
Qed.

Lemma ring_pops : forall i s, pops (ring_instr i) s = (s =? pred (i / T)) && negb (i mod T =? 0).
Proof.
  intros. unfold pops, mentions, ring_instr. cbn [sources].
  destruct (i mod T =? 0); destruct (src (i / T) (i mod T)); cbn; now rewrite ?andb_false_r, ?andb_true_r, ?orb_false_r.
Qed.

Lemma rows_before : forall q t (f : nat -> nat), (forall j, j < q * T -> f j = 0) ->
  sum (q * T + t) f = sum t (fun u => f (q * T + u)).
Proof. intros q t f Z. rewrite sum_split, (sum_zero (q * T)); auto. Qed.

Lemma div_before : forall q j, j < q * T -> j / T < q.
Proof. intros. apply Nat.div_lt_upper_bound; lia. Qed.

Lemma ring_push_at : forall q t, t < T -> push_at ring (q * T + t) q = sum t (L q).
Proof.
  intros q t B. unfold push_at. cbn [ins ring]. rewrite rows_before.
  - apply sum_ext. intros u U. rewrite ring_pushes, place_div, place_mod, Nat.eqb_refl by lia.
    destruct (Nat.eqb_spec (S u) T); [lia|]. cbn. now rewrite place_div, place_mod by lia.
  - intros j J. apply div_before in J. rewrite ring_pushes. destruct (Nat.eqb_spec q (j / T)); [lia|auto].
Qed.

Lemma ring_pop_at : forall q t, q < P -> S t < T -> pop_at ring (q * T + S t) (pred q) = sum t (L (pred q)).
Proof.
  intros q t Q B. unfold pop_at. cbn [ins ring].
  assert (N : node (ring_instr (q * T + S t)) = q) by (cbn; now rewrite place_div by lia). rewrite N, rows_before.
  - change (S t) with (1 + t). rewrite sum_split. cbn [sum]. cbv beta.
    assert (F0 : pops (ring_instr (q * T + 0)) (pred q) = false) by
      (rewrite ring_pops, place_mod by lia; apply andb_false_r).
    rewrite F0. cbn [andb]. rewrite !Nat.add_0_l. apply sum_ext. intros u U. cbv beta.
    assert (F1 : pops (ring_instr (q * T + (1 + u))) (pred q) = true).
    { rewrite ring_pops, place_div, place_mod, Nat.eqb_refl by lia. reflexivity. }
    assert (F2 : node (ring_instr (q * T + (1 + u))) = q) by (cbn; now rewrite place_div by lia).
    assert (F3 : len (ring_instr (q * T + (1 + u))) = L q (S u)) by (cbn; now rewrite place_div, place_mod by lia).
    rewrite F1, F2, F3, Nat.eqb_refl. cbn [andb]. apply L_pred; auto. lia.
  - intros j J. apply div_before in J. cbn [node ring_instr].
    destruct (pops _ _); auto. destruct (Nat.eqb_spec (j / T) q); [lia|auto].
Qed.

Definition producer (i s : nat) : nat := s * T + (i mod T - 1).

Lemma ring_dataflow : dataflow ring c (fun i k => W (i / T) (i mod T) k) producer (fun i => i mod T).
Proof.
  constructor; cbn [count ins streams ring].
  - constructor; cbn [count ins ring].
    + intros i j s _ _. rewrite !ring_pushes. intros A B. apply andb_true_iff in A as [A _], B as [B _].
      apply Nat.eqb_eq in A, B. cbn. congruence.
    + intros i j s _ _ _ _ N. exact N.
  - reflexivity.
  - reflexivity.
  - intros i b s K I. destruct (place_lt i K) as [Q B]. cbn in *. apply in_app_or in I as [I|I].
    + destruct (i mod T =? 0); [contradiction|]. destruct I as [I|[]]. discriminate.
    + unfold slice in I. destruct (src (i / T) (i mod T)) eqn:S; [|contradiction]. destruct I as [I|[]].
      injection I as <- <-. split; auto.
  - intros i s K. rewrite ring_pops. intros H. apply andb_true_iff in H as [H1 H2]. apply Nat.eqb_eq in H1.
    apply negb_true_iff, Nat.eqb_neq in H2. destruct (place_lt i K) as [Q B]. pose proof (pred_lt _ Q) as PL.
    destruct (i mod T) as [|t] eqn:TE; [lia|]. unfold producer. rewrite TE. subst s. set (p := pred (i / T)) in *.
    replace (S t - 1) with t by lia.
    assert (IE : i = i / T * T + S t) by (rewrite <- TE; apply place_eq).
    split; [|split; [|split; [|split]]].
    + apply Nat.lt_le_trans with (p * T + T); [lia|]. replace (p * T + T) with (S p * T) by lia. apply Nat.mul_le_mono_r. lia.
    + rewrite ring_pushes, place_div, place_mod, Nat.eqb_refl by lia. destruct (Nat.eqb_spec (S t) T); [lia|auto].
    + rewrite ring_push_at by lia. rewrite IE at 1. now rewrite ring_pop_at by auto.
    + cbn. rewrite place_div, place_mod, TE by lia. symmetry. now apply L_pred.
    + rewrite place_mod by lia. lia.
  - intros i b s K I. destruct (place_lt i K) as [Q B]. cbn in *. apply in_app_or in I as [I|I].
    + unfold slice in I. destruct (out (i / T) (i mod T)) eqn:S; [|contradiction]. destruct I as [I|[]].
      injection I as <- <-. split; auto.
    + destruct (S (i mod T) =? T); [contradiction|]. destruct I as [I|[]]. discriminate.
  - intros i j s t k l KI KJ I J N BI BJ E. destruct (place_lt i KI) as [QI BTI], (place_lt j KJ) as [QJ BTJ].
    cbn in *. rewrite <- N in *.
    assert (OI : out (i / T) (i mod T) = Some s).
    { apply in_app_or in I as [I|I]; [|destruct (S (i mod T) =? T); [contradiction|destruct I as [I|[]]; discriminate]].
      unfold slice in I. destruct (out (i / T) (i mod T)); [|contradiction]. destruct I as [I|[]]. congruence. }
    assert (OJ : out (i / T) (j mod T) = Some t).
    { apply in_app_or in J as [J|J]; [|destruct (S (j mod T) =? T); [contradiction|destruct J as [J|[]]; discriminate]].
      unfold slice in J. destruct (out (i / T) (j mod T)); [|contradiction]. destruct J as [J|[]]. congruence. }
    assert (TE : i mod T = j mod T) by (eapply (out_once (i / T)); eauto).
    rewrite TE in OI. split; [|congruence || (rewrite OI in OJ; injection OJ as ->; lia)].
    rewrite (place_eq i), (place_eq j). congruence.
  - intros i j K J E. cbn in E. rewrite (place_eq i), (place_eq j), E in J. lia.
  - intros i j _ _ E. exact E.
  - intros i k K B. destruct (place_lt i K) as [Q BT]. cbn [sources ring_instr]. unfold source_value. cbn [node ring ins ring_instr].
    destruct (i mod T) as [|t] eqn:TE.
    + cbn. pose proof (src_first (i / T) Q). destruct (src (i / T) 0); [auto|congruence].
    + change (S t =? 0) with false. cbn [app W]. unfold producer. rewrite TE. replace (S t - 1) with t by lia.
      generalize (pred (i / T)). intros p. destruct (src (i / T) (S t)); cbn; now rewrite place_div, place_mod by lia.
Qed.

(** What the outputs hold. *)
Lemma ring_output : forall st q t a k, reach ring (inputs c) st -> final ring st -> q < P -> t < T ->
  out q t = Some a -> k < L q t -> mem st (PBuf q 1 (a + k)) = Some (W q t k).
Proof.
  intros st q t a k H F Q B O KL.
  pose proof (output_value ring c _ _ _ ring_dataflow st (q * T + t) a k H F) as V. cbn in V.
  rewrite place_div, place_mod in V by lia. rewrite O in V. apply V; auto.
  - apply Nat.lt_le_trans with (q * T + T); [lia|]. replace (q * T + T) with (S q * T) by lia. apply Nat.mul_le_mono_r. lia.
  - now left.
Qed.

End Ring.

(** Blocks of a vector: block [b] is from [start b] to [start (S b)]. *)
Definition ascending (start : nat -> nat) : Prop := forall a b, a <= b -> start a <= start b.

Lemma block_of : forall start P x, ascending start -> start 0 <= x -> x < start P ->
  exists b, b < P /\ start b <= x < start (S b).
Proof.
  intros start P x A Z H. induction P as [|P IH]; [lia|].
  destruct (Nat.lt_ge_cases x (start P)) as [LT|GE]; [destruct (IH LT) as (b & B & R); exists b; split; auto|].
  exists P. split; auto.
Qed.

Lemma block_once : forall start a b x, ascending start -> start a <= x < start (S a) -> start b <= x < start (S b) -> a = b.
Proof.
  intros start a b x A I J. assert (a = b \/ a < b \/ b < a) as [|[G|G]] by lia; auto.
  - specialize (A (S a) b G). lia.
  - specialize (A (S b) a G). lia.
Qed.

(** * Allgather *)
Definition ring_allgather (P n : nat) : schedule :=
  ring P P (fun _ _ => n) (fun _ t => if t =? 0 then Some 0 else None) (fun q t => Some (back P q t * n)).

Theorem ring_allgather_correct : forall P n o, 2 <= P ->
  forall scratch, correct (ring_allgather P n) {| what := Allgather; ranks := P; elems := n; root := 0; ordered := o |} scratch.
Proof.
  intros P n o P2 scratch. set (c := {| what := Allgather; ranks := P; elems := n; root := 0; ordered := o |}).
  assert (IN : forall q, q < P -> input_size c q = n).
  { intros q Q. unfold input_size. cbn. now replace (q <? P) with true by (symmetry; apply Nat.ltb_lt; auto). }
  assert (OUT : forall q, q < P -> output_size c q = n * P).
  { intros q Q. unfold output_size. cbn. now replace (q <? P) with true by (symmetry; apply Nat.ltb_lt; auto). }
  assert (S1 : forall q, q < P -> (if 0 =? 0 then Some 0 else None) <> None) by discriminate.
  assert (S2 : forall q t a, q < P -> t < P -> (if t =? 0 then Some 0 else None) = Some a -> a + n <= input_size c q).
  { intros q t a Q B H. rewrite IN by auto. destruct (t =? 0); [injection H as <-; lia|discriminate]. }
  assert (S3 : forall q t a, q < P -> t < P -> Some (back P q t * n) = Some a -> a + n <= output_size c q).
  { intros q t a Q B H. injection H as <-. rewrite OUT by auto. pose proof (back_lt P P2 t q Q). nia. }
  assert (S4 : forall q t u a b k l, q < P -> t < P -> u < P -> Some (back P q t * n) = Some a -> Some (back P q u * n) = Some b ->
    k < n -> l < n -> a + k = b + l -> t = u).
  { intros q t u a b k l Q BT BU HA HB KN LN E. injection HA as <-. injection HB as <-.
    apply (back_inj P P2 q); auto. nia. }
  assert (V : forall q t k, q < P -> W P (fun _ t => if t =? 0 then Some 0 else None) q t k = Leaf (back P q t) k).
  { intros q t. revert q. induction t; intros q k Q; cbn; auto. apply IHt. now apply (pred_lt P P2). }
  pose proof (ring_dataflow P P (fun _ _ => n) _ _ c P2 ltac:(lia) (fun _ _ _ _ => eq_refl) S1 S2 S3 S4) as DF.
  unfold ring_allgather. apply (dataflow_correct _ _ _ _ _ DF).
  intros st H F r d k R DI KL. unfold required in DI. rewrite OUT in DI by auto.
  destruct (n * P) as [|x] eqn:NP; [contradiction|]. cbn in DI. apply in_map_iff in DI as (b & <- & B).
  apply in_seq in B. cbn in *. destruct (back_onto P P2 r b R ltac:(lia)) as (t & TP & BE).
  exists (Leaf b k). split; [|destruct o; reflexivity].
  pose proof (ring_output P P (fun _ _ => n) _ _ c P2 ltac:(lia) (fun _ _ _ _ => eq_refl) S1 S2 S3 S4 st r t (back P r t * n) k H F R TP eq_refl KL) as M.
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
  assert (IN : forall q, q < P -> input_size c q = n * P).
  { intros q Q. unfold input_size. cbn. now replace (q <? P) with true by (symmetry; apply Nat.ltb_lt; auto). }
  assert (OUT : forall q, q < P -> output_size c q = n).
  { intros q Q. unfold output_size. cbn. now replace (q <? P) with true by (symmetry; apply Nat.ltb_lt; auto). }
  set (src := fun q t => Some (back P q (S t) * n)). set (out := fun (_ t : nat) => if S t =? P then Some 0 else None).
  assert (S1 : forall q, q < P -> src q 0 <> None) by discriminate.
  assert (S2 : forall q t a, q < P -> t < P -> src q t = Some a -> a + n <= input_size c q).
  { intros q t a Q B H. injection H as <-. rewrite IN by auto. pose proof (back_lt P P2 t (pred P q) (pred_lt P P2 q Q)). nia. }
  assert (S3 : forall q t a, q < P -> t < P -> out q t = Some a -> a + n <= output_size c q).
  { intros q t a Q B H. rewrite OUT by auto. unfold out in H. destruct (S t =? P); [injection H as <-; lia|discriminate]. }
  assert (S4 : forall q t u a b k l, q < P -> t < P -> u < P -> out q t = Some a -> out q u = Some b ->
    k < n -> l < n -> a + k = b + l -> t = u).
  { intros q t u a b k l _ _ _ HA HB _ _ _. unfold out in *. destruct (Nat.eqb_spec (S t) P), (Nat.eqb_spec (S u) P); try discriminate. lia. }
  unfold ring_reduce_scatter. fold src. fold out.
  pose proof (ring_dataflow P P (fun _ _ => n) src out c P2 ltac:(lia) (fun _ _ _ _ => eq_refl) S1 S2 S3 S4) as DF.
  apply (dataflow_correct _ _ _ _ _ DF).
  intros st H F r d k R DI KL. unfold required in DI. rewrite OUT in DI by auto.
  destruct n as [|n']; [contradiction|]. cbn in DI. destruct DI as [<-|[]]. cbn [d_from d_len d_element d_first d_ranks] in *.
  set (n := S n') in *.
  pose proof (ring_output P P (fun _ _ => n) _ _ c P2 ltac:(lia) (fun _ _ _ _ => eq_refl) S1 S2 S3 S4 st r (P - 1) 0 k H F R ltac:(lia)) as M.
  assert (O : out r (P - 1) = Some 0) by (unfold out; now replace (S (P - 1) =? P) with true by (symmetry; apply Nat.eqb_eq; lia)).
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

Definition ring_allreduce (P n : nat) : schedule :=
  ring P (2 * P - 1) (fun q t => blocks P n (S (back P q (S t))) - blocks P n (back P q (S t)))
    (fun q t => if t <? P then Some (blocks P n (back P q (S t))) else None)
    (fun q t => if P <=? S t then Some (blocks P n (back P q (S t))) else None).

Theorem ring_allreduce_correct : forall P n, 2 <= P ->
  forall scratch, correct (ring_allreduce P n)
    {| what := Allreduce; ranks := P; elems := n; root := 0; ordered := false |} scratch.
Proof.
  intros P n P2 scratch. set (c := {| what := Allreduce; ranks := P; elems := n; root := 0; ordered := false |}).
  set (start := blocks P n). assert (A : ascending start) by apply blocks_ascending.
  assert (Z : start P = n) by (apply blocks_end; lia).
  assert (IN : forall q, q < P -> input_size c q = n).
  { intros q Q. unfold input_size. cbn. now replace (q <? P) with true by (symmetry; apply Nat.ltb_lt; auto). }
  assert (OUT : forall q, q < P -> output_size c q = n).
  { intros q Q. unfold output_size. cbn. now replace (q <? P) with true by (symmetry; apply Nat.ltb_lt; auto). }
  set (L := fun q t => start (S (back P q (S t))) - start (back P q (S t))).
  set (src := fun q t => if t <? P then Some (start (back P q (S t))) else None).
  set (out := fun q t => if P <=? S t then Some (start (back P q (S t))) else None).
  assert (FIT : forall q t, q < P -> start (back P q (S t)) + L q t <= n).
  { intros q t Q. unfold L. pose proof (back_lt P P2 (S t) q Q) as B.
    pose proof (A (S (back P q (S t))) P ltac:(lia)). pose proof (A (back P q (S t)) (S (back P q (S t))) ltac:(lia)). lia. }
  assert (S1 : forall q, q < P -> src q 0 <> None).
  { intros q Q. unfold src. now replace (0 <? P) with true by (symmetry; apply Nat.ltb_lt; lia). }
  assert (S2 : forall q t a, q < P -> t < 2 * P - 1 -> src q t = Some a -> a + L q t <= input_size c q).
  { intros q t a Q B H. rewrite IN by auto. unfold src in H. destruct (t <? P); [|discriminate].
    assert (a = start (back P q (S t))) as -> by congruence. now apply FIT. }
  assert (S3 : forall q t a, q < P -> t < 2 * P - 1 -> out q t = Some a -> a + L q t <= output_size c q).
  { intros q t a Q B H. rewrite OUT by auto. unfold out in H. destruct (P <=? S t); [|discriminate].
    assert (a = start (back P q (S t))) as -> by congruence. now apply FIT. }
  assert (LATE : forall q u, q < P -> back P q (S (P - 1 + u)) = back P q u).
  { intros q u Q. replace (S (P - 1 + u)) with (P + u) by lia. now rewrite back_add, back_P by auto. }
  assert (S4 : forall q t u a b k l, q < P -> t < 2 * P - 1 -> u < 2 * P - 1 -> out q t = Some a -> out q u = Some b ->
    k < L q t -> l < L q u -> a + k = b + l -> t = u).
  { intros q t u a b k l Q BT BU HA HB KL LL E. unfold out in *.
    destruct (Nat.leb_spec P (S t)); [|discriminate]. destruct (Nat.leb_spec P (S u)); [|discriminate].
    assert (a = start (back P q (S t))) as -> by congruence. assert (b = start (back P q (S u))) as -> by congruence.
    unfold L in *. assert (BE : back P q (S t) = back P q (S u)).
    { apply (block_once start _ _ (start (back P q (S t)) + k)); auto; lia. }
    replace t with (P - 1 + (t - (P - 1))) in BE by lia. replace u with (P - 1 + (u - (P - 1))) in BE by lia.
    rewrite !LATE in BE by auto. apply (back_inj P P2 q) in BE; auto; lia. }
  unfold ring_allreduce. fold start. fold L. fold src. fold out.
  assert (LP : forall q t, q < P -> S t < 2 * P - 1 -> L q (S t) = L (pred P q) t) by reflexivity.
  pose proof (ring_dataflow P (2 * P - 1) L src out c P2 ltac:(lia) LP S1 S2 S3 S4) as DF.
  apply (dataflow_correct _ _ _ _ _ DF).
  intros st H F r d k R DI KL. unfold required in DI. rewrite OUT in DI by auto.
  destruct n as [|n'] eqn:NE; [contradiction|]. rewrite <- NE in *. cbn in DI.
  destruct DI as [<-|[]]. cbn [d_from d_len d_element d_first d_ranks] in *.
  destruct (block_of start P k A) as (b & B & RNG); [unfold start, blocks; cbn; lia|lia|].
  destruct (back_onto P P2 r b R B) as (u & U & BE).
  assert (O : out r (P - 1 + u) = Some (start b)).
  { unfold out. rewrite LATE, BE by auto. now replace (P <=? S (P - 1 + u)) with true by (symmetry; apply Nat.leb_le; lia). }
  assert (LE : L r (P - 1 + u) = start (S b) - start b) by (unfold L; now rewrite LATE, BE by auto).
  pose proof (ring_output P (2 * P - 1) L src out c P2 ltac:(lia) LP S1 S2 S3 S4 st r (P - 1 + u) (start b) (k - start b)
    H F R ltac:(lia) O ltac:(lia)) as M. replace (start b + (k - start b)) with k in M by lia.
  eexists. split; [exact M|]. unfold alike. cbn [what ordered].
  (* After the reduction the value only travels. *)
  assert (TRAVEL : forall u q e, q < P -> W P src q (P - 1 + u) e = W P src (back P q u) (P - 1) e).
  { clear -P2. induction u; intros q e Q; [now rewrite Nat.add_0_r|].
    replace (P - 1 + S u) with (S (P - 1 + u)) by lia. cbn [W]. unfold src at 1.
    replace (S (P - 1 + u) <? P) with false by (symmetry; apply Nat.ltb_ge; lia).
    cbn [back]. apply IHu. now apply (pred_lt P P2). }
  rewrite TRAVEL, BE by auto.
  rewrite (leaves_gathered P start src); auto.
  - replace (S (P - 1)) with P by lia. rewrite back_P by auto. replace (start b + (k - start b)) with k by lia.
    apply Permutation_map, gathered_all; auto.
  - intros p v PP VV. unfold src. now replace (v <? P) with true by (symmetry; apply Nat.ltb_lt; lia).
Qed.
