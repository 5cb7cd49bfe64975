(** Schedules in which data flows only through streams: an instruction reads inputs and streams, and each place of an
    output is written once. For such a schedule of any size, numbers that grow along lanes and streams show that it
    cannot be stuck, and the value of each output follows from equations along the streams. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model Order Determined Collective Checker.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.

Lemma search : forall n (f : nat -> bool), (exists i, i < n /\ f i = true) \/ (forall i, i < n -> f i = false).
Proof.
  induction n; intros f; [right; lia|]. destruct (IHn f) as [(i & I & H)|H]; [left; exists i; auto|].
  destruct (f n) eqn:F; [left; exists n; auto|]. right. intros i I.
  destruct (Nat.eq_dec i n) as [->|]; auto. apply H. lia.
Qed.

Lemma sum_member : forall n f i, i < n -> f i <= sum n f.
Proof. induction n; cbn; intros f i I; [lia|]. destruct (Nat.eq_dec i n) as [->|]; [lia|]. specialize (IHn f i). lia. Qed.

Lemma sum_split : forall a b f, sum (a + b) f = sum a f + sum b (fun x => f (a + x)).
Proof. induction b; intros f; [now rewrite Nat.add_0_r, Nat.add_0_r|]. rewrite Nat.add_succ_r. cbn. rewrite IHb. lia. Qed.

Section Dataflow.
Variable sc : schedule.
Variable c : collective.
(** The value of element [k] of an instruction, the instruction that pushes what another one pops, and the numbers. *)
Variable W : nat -> nat -> tree.
Variable producer : nat -> nat -> nat.
Variable time : nat -> nat.
Notation instr_of := (ins sc).

Definition source_value (i k : nat) (o : operand) : option tree :=
  match o with Buf _ s => Some (Leaf (node (instr_of i)) (s + k)) | Str s => Some (W (producer i s) k) end.

Record dataflow : Prop := {
  f_ends : ends sc;
  f_after : forall i, i < count sc -> after (instr_of i) = [];
  f_room : forall s, capacity (streams sc s) = None;
  f_input : forall i b s, i < count sc -> In (Buf b s) (sources (instr_of i)) ->
    b = 0 /\ s + len (instr_of i) <= input_size c (node (instr_of i));
  f_stream : forall i s, i < count sc -> pops (instr_of i) s = true ->
    producer i s < count sc /\ pushes (instr_of (producer i s)) s = true /\
    push_at sc (producer i s) s = pop_at sc i s /\ len (instr_of (producer i s)) = len (instr_of i) /\
    time (producer i s) < time i;
  f_output : forall i b s, i < count sc -> In (Buf b s) (sinks (instr_of i)) ->
    b = 1 /\ s + len (instr_of i) <= output_size c (node (instr_of i));
  f_once : forall i j s t k l, i < count sc -> j < count sc -> In (Buf 1 s) (sinks (instr_of i)) ->
    In (Buf 1 t) (sinks (instr_of j)) -> node (instr_of i) = node (instr_of j) -> k < len (instr_of i) ->
    l < len (instr_of j) -> s + k = t + l -> i = j /\ k = l;
  f_lane : forall i j, i < count sc -> j < i -> lane (instr_of j) = lane (instr_of i) -> time j < time i;
  f_one : forall i j, i < count sc -> j < count sc -> node (instr_of i) = node (instr_of j) ->
    lane (instr_of i) = lane (instr_of j);
  f_value : forall i k, i < count sc -> k < len (instr_of i) ->
    value (map (source_value i k) (sources (instr_of i))) = Some (W i k) }.

Hypothesis D : dataflow.

Lemma ready_at : forall d t i, inv sc d -> (forall j, j < count sc -> time j < t -> d j = len (instr_of j)) ->
  i < count sc -> time i = t -> d i < len (instr_of i) ->
  forall n, d i + n <= len (instr_of i) -> ready sc d i n.
Proof.
  intros d t i V DONE K T L n N.
  assert (LP : forall j, j < i -> lane (instr_of j) = lane (instr_of i) -> d j = len (instr_of j)).
  { intros j J LE. apply DONE; [lia|]. rewrite <- T. now apply (f_lane D). }
  constructor; auto.
  - intros j J. now rewrite (f_after D) in J.
  - intros s P. destruct (f_stream D i s K P) as (PK & PP & PA & PL & PT).
    rewrite (popped_current sc d i s (f_ends D) V ltac:(split; auto) P). rewrite <- PA.
    assert (B : push_at sc (producer i s) s + len (instr_of (producer i s)) <= pushed sc d s); [|lia].
    replace (push_at sc (producer i s) s + len (instr_of (producer i s)))
      with (sum (S (producer i s)) (fun j => if pushes (instr_of j) s then d j else 0)).
    + unfold pushed. replace (count sc) with (S (producer i s) + (count sc - S (producer i s))) by lia.
      rewrite sum_split. lia.
    + cbn. rewrite PP. f_equal; [|apply DONE; auto; lia]. apply sum_ext. intros j J.
      destruct (pushes (instr_of j) s) eqn:Q; auto. apply DONE; [lia|].
      assert (time j < time (producer i s)); [|lia]. apply (f_lane D); auto. apply (e_push _ (f_ends D) j _ s); auto. lia.
  - intros s r cap _ _ C. now rewrite (f_room D) in C.
Qed.

Lemma flows_on : forall d, inv sc d -> (forall i, i < count sc -> d i = len (instr_of i)) \/
  exists i, i < count sc /\ d i < len (instr_of i) /\ forall n, d i + n <= len (instr_of i) -> ready sc d i n.
Proof.
  intros d V.
  assert (G : forall t, (forall j, j < count sc -> time j < t -> d j = len (instr_of j)) \/
    exists i, i < count sc /\ d i < len (instr_of i) /\ forall n, d i + n <= len (instr_of i) -> ready sc d i n).
  { induction t as [|t [IH|IH]]; [left; lia| |auto].
    destruct (search (count sc) (fun i => (time i =? t) && (d i <? len (instr_of i)))) as [(i & K & H)|H].
    - apply andb_true_iff in H as [H1 H2]. apply Nat.eqb_eq in H1. apply Nat.ltb_lt in H2. right. exists i.
      split; auto. split; auto. intros n N. now apply (ready_at d t).
    - left. intros j K J. destruct (Nat.eq_dec (time j) t) as [Q|]; [|apply IH; auto; lia].
      specialize (H j K). rewrite Q, Nat.eqb_refl in H. cbn in H. apply Nat.ltb_ge in H. pose proof (v_len _ _ V j K). lia. }
  destruct (G (S (sum (count sc) time))) as [F|]; auto. left. intros i K. apply F; auto.
  pose proof (sum_member (count sc) time i K). lia.
Qed.

Lemma pushed_past : forall d i s, inv sc d -> i < count sc -> pushes (instr_of i) s = true ->
  forall k, k < len (instr_of i) -> push_at sc i s + k < pushed sc d s -> k < d i.
Proof. intros d i s V K P k L H. now apply (pushed_reaches sc (f_ends D) d i s k). Qed.

Lemma one_writer : forall i j k l o p, i < count sc -> j < count sc -> k < len (instr_of i) -> l < len (instr_of j) ->
  In o (sinks (instr_of i)) -> In p (sinks (instr_of j)) -> sink_place sc i k o = sink_place sc j l p -> i = j /\ k = l.
Proof.
  intros i j k l [b s|s] [b' t|t] I J K L IO IP H; cbn in H; try discriminate.
  - injection H as HN -> HP. destruct (f_output D i b' s I IO) as [-> _]. now apply (f_once D i j s t k l).
  - injection H as -> HP. apply in_streams in IO, IP.
    assert (i = j \/ i < j \/ j < i) as [->|[G|G]] by lia.
    + split; auto. lia.
    + pose proof (push_apart sc i j t I J IO IP G). lia.
    + pose proof (push_apart sc j i t J I IP IO G). lia.
Qed.

Record filled (st : state) : Prop := {
  m_inputs : forall n x, mem st (PBuf n 0 x) = inputs c (PBuf n 0 x);
  m_values : forall i k o, i < count sc -> k < done st i -> In o (sinks (instr_of i)) ->
    mem st (sink_place sc i k o) = Some (W i k) }.

Lemma sources_filled : forall st i, inv sc (done st) -> filled st -> ready sc (done st) i 1 ->
  forall o, In o (sources (instr_of i)) ->
  mem st (read_place sc (done st) i o) = source_value i (done st i) o.
Proof.
  intros st i V M RD [b s|s] I; pose proof (r_known _ _ _ _ RD) as K; pose proof (r_left _ _ _ _ RD) as L; cbn.
  - destruct (f_input D i b s K I) as [-> B]. rewrite (m_inputs _ M). cbn.
    replace (s + done st i <? input_size c (node (instr_of i))) with true; auto. symmetry. apply Nat.ltb_lt. lia.
  - apply in_streams in I. destruct (f_stream D i s K I) as (PK & PP & PA & PL & _).
    assert (C : current sc (done st) i) by (split; [auto|split; [lia|apply RD]]).
    rewrite (popped_current sc (done st) i s (f_ends D) V C I). rewrite <- PA.
    apply (m_values _ M (producer i s) (done st i) (Str s)); auto; [|now apply in_streams].
    apply (pushed_past (done st) (producer i s) s); auto; [lia|]. rewrite PA.
    pose proof (r_sources _ _ _ _ RD s I) as RS. rewrite (popped_current sc (done st) i s (f_ends D) V C I) in RS. lia.
Qed.

Lemma reach_filled : forall st, reach sc (inputs c) st -> filled st.
Proof.
  induction 1 as [|st st' H M [i RD]]; [constructor; cbn; intros; auto; lia|].
  pose proof (reach_inv _ _ _ H) as V. pose proof (r_known _ _ _ _ RD) as K. pose proof (r_left _ _ _ _ RD) as L.
  assert (C : current sc (done st) i) by (split; [auto|split; [lia|apply RD]]).
  assert (WP : forall o, In o (sinks (instr_of i)) -> write_place sc (done st) i o = sink_place sc i (done st i) o).
  { intros [b x|s] I; cbn; auto. rewrite (pushed_current sc (done st) i s (f_ends D) V C); auto. now apply in_streams. }
  assert (VAL : value (map (fun o => mem st (read_place sc (done st) i o)) (sources (instr_of i))) = Some (W i (done st i))).
  { rewrite <- (f_value D i (done st i)) by (auto; lia). f_equal. apply map_ext_in. intros. now apply sources_filled. }
  constructor; cbn [mem move done]; rewrite VAL; unfold written.
  - intros n x. destruct in_dec as [I|N]; [|apply M]. exfalso. apply in_map_iff in I as (o & OE & IO).
    rewrite WP in OE by auto. destruct o as [b s|s]; cbn in OE; [|discriminate]. injection OE as _ -> _.
    now destruct (f_output D i 0 s K IO).
  - intros j l p J LD IP. destruct in_dec as [I|N].
    + apply in_map_iff in I as (o & OE & IO). rewrite WP in OE by auto.
      assert (l < len (instr_of j)).
      { unfold upd in LD. destruct (Nat.eqb_spec j i) as [->|]; [lia|]. pose proof (v_len _ _ V j J). lia. }
      destruct (one_writer i j (done st i) l o p) as [-> ->]; auto. lia.
    + apply (m_values _ M); auto. unfold upd in LD. destruct (Nat.eqb_spec j i) as [->|]; auto.
      destruct (Nat.eq_dec l (done st i)) as [->|]; [|lia]. exfalso. apply N. rewrite <- WP by auto. now apply in_map.
Qed.

(** Everything but the results, which depend on the collective. *)
Theorem dataflow_correct :
  (forall st, reach sc (inputs c) st -> final sc st -> complete c (mem st)) -> forall scratch, correct sc c scratch.
Proof.
  intros RES scratch. constructor; auto.
  - intros st H. destruct (flows_on (done st) (reach_inv _ _ _ H)) as [F|F]; auto.
  - intros n st. apply executions_end.
  - intros i j I J LN EN. exfalso. apply LN. now apply (f_one D).
  - intros st i o H RD I. rewrite (sources_filled st i (reach_inv _ _ _ H) (reach_filled st H) RD o I).
    destruct o; discriminate.
  - intros i o b s I IO ->. apply in_app_or in IO as [IO|IO].
    + destruct (f_input D i b s I IO) as [-> B]. auto.
    + destruct (f_output D i b s I IO) as [-> B]. auto.
  - intros i s I IN. now destruct (f_output D i 0 s I IN).
Qed.

(** The value at the end of a place of an output. *)
Lemma output_value : forall st i s k, reach sc (inputs c) st -> final sc st -> i < count sc ->
  In (Buf 1 s) (sinks (instr_of i)) -> k < len (instr_of i) -> mem st (PBuf (node (instr_of i)) 1 (s + k)) = Some (W i k).
Proof.
  intros st i s k H F K I L. apply (m_values _ (reach_filled st H) i k (Buf 1 s)); auto. rewrite F; auto.
Qed.

End Dataflow.
