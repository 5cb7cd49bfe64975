(** Schedules of one lane a node and of streams without limits, with buffers that a node reads and writes again. For
    such a schedule of any size, numbers that grow along lanes and streams show that it cannot be stuck. The value of
    each element follows from equations along the streams and from the last instruction that wrote a place. *)
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
Proof. induction n; cbn; intros f i I; [lia|]. destruct (Nat.eq_dec i n) as [->|]; [lia|]. specialize (IHn f i). lia.
  Qed.

Lemma sum_split : forall a b f, sum (a + b) f = sum a f + sum b (fun x => f (a + x)).
Proof. induction b; intros f; [now rewrite Nat.add_0_r, Nat.add_0_r|]. rewrite Nat.add_succ_r. cbn. rewrite IHb. lia.
  Qed.

(** A combination has a value only if each of its operands has one. *)
Lemma value_all : forall vs t, value vs = Some t -> ~ In None vs.
Proof.
  assert (G : forall vs v t, fold_left combine vs v = Some t -> v <> None /\ ~ In None vs).
  { induction vs as [|w vs IH]; cbn; intros v t H; [split; [congruence|auto]|].
    destruct (IH _ _ H) as [C N]. destruct v, w; cbn in C; try congruence. split; [congruence|].
    intros [X|X]; [discriminate|auto]. }
  intros [|v vs] t H; cbn in H; [discriminate|]. destruct (G _ _ _ H) as [C N]. intros [X|X]; auto.
Qed.

Lemma buffer_element_here : forall l os b s x, In (Buf b s) os -> s <= x < s + l -> buffer_element l os b x <> None.
Proof.
  intros l os b s x I X H. apply (buffer_element_none l os b x s (x - s)) in H; auto; lia.
Qed.

Lemma buffer_element_absent : forall l os b x, (forall s,
  In (Buf b s) os -> x < s \/ s + l <= x) -> buffer_element l os b x = None.
Proof.
  intros l os b x H. destruct (buffer_element l os b x) eqn:E; auto.
  destruct (buffer_element_some _ _ _ _ _ E) as (K & s & I & ->). specialize (H s I). lia.
Qed.

Section Flow.
Variable sc : schedule.
Variable c : collective.
Variable scratch : nat -> nat.
(** The value of element [k] of an instruction; the value that an instruction pops from a stream as its element [k];
    and the numbers. *)
Variable V : nat -> nat -> tree.
Variable got : nat -> nat -> nat -> tree.
Variable time : nat -> nat.
Notation instr_of := (ins sc).

(** The contents of the buffers of node [n] when of its instructions before [i] each has moved as many elements as [d]
    says: those of the last instruction that wrote the place. *)
Fixpoint contents (d : nat -> nat) (n i b x : nat) : option tree :=
  match i with
  | 0 => inputs c (PBuf n b x)
  | S j => if node (instr_of j) =? n then
      match buffer_element (d j) (sinks (instr_of j)) b x with Some k => Some (V j k) | None => contents d n j b x end
    else contents d n j b x
  end.
Definition before (n i b x : nat) : option tree := contents (fun j => len (instr_of j)) n i b x.

Definition source_value (i k : nat) (o : operand) : option tree :=
  match o with Buf b s => before (node (instr_of i)) i b (s + k) | Str s => Some (got i s k) end.

Definition room (n b : nat) : nat := match b with 0 => input_size c n | 1 => output_size c n | 2 => scratch n | _ => 0
  end.

Record flow : Prop := {
  f_ends : ends sc;
  f_after : forall i, i < count sc -> after (instr_of i) = [];
  f_room : forall s, capacity (streams sc s) = None;
  f_inside : forall i b s, i < count sc -> In (Buf b s) (sources (instr_of i) ++ sinks (instr_of i)) ->
    s + len (instr_of i) <= room (node (instr_of i)) b;
  f_kept : forall i s, i < count sc -> ~ In (Buf 0 s) (sinks (instr_of i));
  f_aligned : aligned sc;
  f_stream : forall i s, i < count sc -> pops (instr_of i) s = true -> exists p, p < count sc /\
    pushes (instr_of p) s = true /\ push_at sc p s = pop_at sc i s /\ len (instr_of p) = len (instr_of i) /\
    time p < time i /\ forall k, k < len (instr_of i) -> got i s k = V p k;
  f_lane : forall i j, i < count sc -> j < i -> lane (instr_of j) = lane (instr_of i) -> time j < time i;
  f_one : forall i j, i < count sc -> j < count sc -> node (instr_of i) = node (instr_of j) ->
    lane (instr_of i) = lane (instr_of j);
  f_value : forall i k, i < count sc -> k < len (instr_of i) ->
    value (map (source_value i k) (sources (instr_of i))) = Some (V i k) }.

(** The last instruction of a node before [i] that wrote a place. *)
Lemma before_last : forall n i j b s k, j < i -> node (instr_of j) = n -> buffer_element (len (instr_of j)) (sinks
  (instr_of j)) b (s + k) = Some k ->
  (forall l, j < l < i -> node (instr_of l) = n -> forall t, In (Buf b t) (sinks (instr_of l)) ->
    s + k < t \/ t + len (instr_of l) <= s + k) ->
  before n i b (s + k) = Some (V j k).
Proof.
  unfold before. induction i as [|i IH]; intros j b s k J N E L; [lia|]. cbn [contents].
  destruct (Nat.eq_dec j i) as [->|NE]; [now rewrite N, Nat.eqb_refl, E|].
  destruct (Nat.eqb_spec (node (instr_of i)) n) as [NI|]; [|apply IH; auto; try lia; intros l LL; apply L; lia].
  rewrite buffer_element_absent; [apply IH; auto; try lia; intros l LL; apply L; lia|]. apply L; auto. lia.
Qed.

(** A place that has been written, and always with one value. *)
Lemma before_same : forall n i b x t,
  (exists j, j < i /\ node (instr_of j) = n /\ buffer_element (len (instr_of j)) (sinks (instr_of j)) b x <> None) ->
  (forall j k, j < i -> node (instr_of j) = n ->
    buffer_element (len (instr_of j)) (sinks (instr_of j)) b x = Some k -> V j k = t) ->
  before n i b x = Some t.
Proof.
  unfold before. induction i as [|i IH]; intros b x t (j & J & N & W) SAME; [lia|]. cbn [contents].
  assert (LATER : j <> i -> contents (fun j => len (instr_of j)) n i b x = Some t).
  { intros NE. apply IH; [exists j; repeat split; auto; lia|]. intros; apply SAME with (j := j0); auto. }
  destruct (Nat.eqb_spec (node (instr_of i)) n) as [NI|NI]; [|apply LATER; congruence].
  destruct (buffer_element (len (instr_of i)) (sinks (instr_of i)) b x) as [k|] eqn:E; [f_equal; apply (SAME i k); auto|].
  apply LATER. intros ->. contradiction.
Qed.

Lemma before_input : forall n i x, (forall j s, j < i -> node (instr_of j) = n -> ~ In (Buf 0 s) (sinks (instr_of j)))
  ->
  before n i 0 x = inputs c (PBuf n 0 x).
Proof.
  unfold before. induction i; intros x K; cbn [contents]; auto. rewrite IHi by (intros; apply K; auto; lia).
  destruct (Nat.eqb_spec (node (instr_of i)) n); auto. rewrite buffer_element_absent; auto.
  intros s IS. exfalso. apply (K i s); auto.
Qed.

Lemma contents_same : forall n i d e, (forall j, j < i -> node (instr_of j) = n -> d j = e j) ->
  forall b x, contents d n i b x = contents e n i b x.
Proof.
  induction i; intros d e H b x; cbn [contents]; auto. rewrite (IHi d e) by auto.
  destruct (Nat.eqb_spec (node (instr_of i)) n); auto. now rewrite H by auto.
Qed.

Lemma buffer_element_zero : forall os b x, buffer_element 0 os b x = None.
Proof. intros. destruct (buffer_element 0 os b x) eqn:E; auto. apply buffer_element_some in E. lia. Qed.

(** Later instructions that have not started write nothing. *)
Lemma contents_started : forall d n i m, i <= m -> (forall j, i <= j < m -> node (instr_of j) = n -> d j = 0) ->
  forall b x, contents d n m b x = contents d n i b x.
Proof.
  induction m; intros I H b x; [now replace i with 0 by lia|].
  destruct (Nat.eq_dec i (S m)) as [->|]; auto. cbn [contents]. rewrite IHm; [|lia|intros; apply H; auto; lia].
  destruct (Nat.eqb_spec (node (instr_of m)) n); auto. now rewrite H, buffer_element_zero by (auto; lia).
Qed.

Hypothesis D : flow.

Lemma ready_at : forall d t i, inv sc d -> (forall j, j < count sc -> time j < t -> d j = len (instr_of j)) ->
  i < count sc -> time i = t -> d i < len (instr_of i) ->
  forall n, d i + n <= len (instr_of i) -> ready sc d i n.
Proof.
  intros d t i IV DONE K T L n N.
  assert (LP : forall j, j < i -> lane (instr_of j) = lane (instr_of i) -> d j = len (instr_of j)).
  { intros j J LE. apply DONE; [lia|]. rewrite <- T. now apply (f_lane D). }
  constructor; auto.
  - intros j J. now rewrite (f_after D) in J.
  - intros s P. destruct (f_stream D i s K P) as (p & PK & PP & PA & PL & PT & _).
    rewrite (popped_current sc d i s (f_ends D) IV ltac:(split; auto) P). rewrite <- PA.
    assert (B : push_at sc p s + len (instr_of p) <= pushed sc d s); [|lia].
    replace (push_at sc p s + len (instr_of p)) with (sum (S p) (fun j => if pushes (instr_of j) s then d j else 0)).
    + unfold pushed. replace (count sc) with (S p + (count sc - S p)) by lia. rewrite sum_split. lia.
    + cbn. rewrite PP. f_equal; [|apply DONE; auto; lia]. apply sum_ext. intros j J.
      destruct (pushes (instr_of j) s) eqn:Q; auto. apply DONE; [lia|].
      assert (time j < time p); [|lia]. apply (f_lane D); auto. apply (e_push _ (f_ends D) j _ s); auto. lia.
  - intros s r cap _ _ C. now rewrite (f_room D) in C.
Qed.

Lemma flows_on : forall d, inv sc d -> (forall i, i < count sc -> d i = len (instr_of i)) \/
  exists i, i < count sc /\ d i < len (instr_of i) /\ forall n, d i + n <= len (instr_of i) -> ready sc d i n.
Proof.
  intros d IV.
  assert (G : forall t, (forall j, j < count sc -> time j < t -> d j = len (instr_of j)) \/
    exists i, i < count sc /\ d i < len (instr_of i) /\ forall n, d i + n <= len (instr_of i) -> ready sc d i n).
  { induction t as [|t [IH|IH]]; [left; lia| |auto].
    destruct (search (count sc) (fun i => (time i =? t) && (d i <? len (instr_of i)))) as [(i & K & H)|H].
    - apply andb_true_iff in H as [H1 H2]. apply Nat.eqb_eq in H1. apply Nat.ltb_lt in H2. right. exists i.
      split; auto. split; auto. intros n N. now apply (ready_at d t).
    - left. intros j K J. destruct (Nat.eq_dec (time j) t) as [Q|]; [|apply IH; auto; lia].
      specialize (H j K). rewrite Q, Nat.eqb_refl in H. cbn in H. apply Nat.ltb_ge in H. pose proof (v_len _ _ IV j K).
        lia. }
  destruct (G (S (sum (count sc) time))) as [F|]; auto. left. intros i K. apply F; auto.
  pose proof (sum_member (count sc) time i K). lia.
Qed.

Record filled (st : state) : Prop := {
  m_buffers : forall n b x, mem st (PBuf n b x) = contents (done st) n (count sc) b x;
  m_streams : forall i k s, i < count sc -> k < done st i -> pushes (instr_of i) s = true ->
    mem st (PStr s (push_at sc i s + k)) = Some (V i k) }.

(** The contents while an instruction runs: its own elements over those of all before it. *)
Lemma running : forall d i, inv sc d -> current sc d i -> forall e b x, (forall j, j <> i -> e j = d j) ->
  contents e (node (instr_of i)) (count sc) b x =
  match buffer_element (e i) (sinks (instr_of i)) b x with
  | Some k => Some (V i k) | None => before (node (instr_of i)) i b x end.
Proof.
  intros d i IV C e b x E. pose proof C as (K & F & L).
  rewrite (contents_started e _ (S i)); [|lia|].
  - cbn [contents]. rewrite Nat.eqb_refl. unfold before.
    rewrite (contents_same _ i e (fun j => len (instr_of j))); auto.
    intros j J N. rewrite E by lia. apply L; auto. apply (f_one D); auto. lia.
  - intros j J N. rewrite E by lia. apply (later_zero sc d i j IV C); [lia|]. apply (f_one D); auto. lia.
Qed.

Lemma sources_filled : forall st i, inv sc (done st) -> filled st -> ready sc (done st) i 1 ->
  forall o, In o (sources (instr_of i)) ->
  mem st (read_place sc (done st) i o) = source_value i (done st i) o.
Proof.
  intros st i IV M RD o I. pose proof (r_known _ _ _ _ RD) as K; pose proof (r_left _ _ _ _ RD) as L.
  assert (C : current sc (done st) i) by (split; [auto|split; [lia|apply RD]]). destruct o as [b s|s]; cbn.
  - rewrite (m_buffers _ M), (running (done st) i IV C (done st)) by auto.
    destruct (buffer_element (done st i) (sinks (instr_of i)) b (s + done st i)) eqn:E; auto. exfalso.
    destruct (buffer_element_some _ _ _ _ _ E) as (Q & t & IT & X).
    pose proof (f_aligned D i (Buf b t) (Buf b s) K IT ltac:(apply in_or_app; now right) eq_refl). lia.
  - apply in_streams in I. destruct (f_stream D i s K I) as (p & PK & PP & PA & PL & _ & G).
    rewrite (popped_current sc (done st) i s (f_ends D) IV C I), <- PA, G by lia.
    apply (m_streams _ M); auto. apply (pushed_reaches sc (f_ends D) (done st) p s); auto; [lia|]. rewrite PA.
    pose proof (r_sources _ _ _ _ RD s I) as RS. rewrite (popped_current sc (done st) i s (f_ends D) IV C I) in RS. lia.
Qed.

(** Two instructions push to different positions of a stream. *)
Lemma one_pusher : forall i j k l s, i < count sc -> j < count sc -> k < len (instr_of i) -> l < len (instr_of j) ->
  pushes (instr_of i) s = true -> pushes (instr_of j) s = true -> push_at sc i s + k = push_at sc j s + l -> i = j /\ k
    = l.
Proof.
  intros i j k l s I J K L PI PJ E. assert (i = j \/ i < j \/ j < i) as [->|[G|G]] by lia.
  - split; auto. lia.
  - pose proof (push_apart sc i j s I J PI PJ G). lia.
  - pose proof (push_apart sc j i s J I PJ PI G). lia.
Qed.

Lemma reach_filled : forall st, reach sc (inputs c) st -> filled st.
Proof.
  induction 1 as [|st st' H M [i RD]].
  { constructor; cbn; intros; [|lia]. now rewrite (contents_started _ _ 0) by (auto; lia). }
  pose proof (reach_inv _ _ _ H) as IV. pose proof (r_known _ _ _ _ RD) as K. pose proof (r_left _ _ _ _ RD) as L.
  assert (C : current sc (done st) i) by (split; [auto|split; [lia|apply RD]]). set (k := done st i) in *.
  assert (VAL : value (map (fun o => mem st (read_place sc (done st) i o)) (sources (instr_of i))) = Some (V i k)).
  { rewrite <- (f_value D i k) by (auto; unfold k; lia). f_equal. apply map_ext_in. intros. now apply sources_filled. }
  constructor; cbn [mem move done]; rewrite VAL; unfold written.
  - intros n b x. destruct (Nat.eq_dec (node (instr_of i)) n) as [<-|N].
    + rewrite (running (done st) i IV C) by (intros; now apply upd_other). rewrite upd_same. fold k.
      destruct in_dec as [I|O].
      * apply in_map_iff in I as (o & OE & IO). destruct o as [b' s|s]; cbn in OE; [|discriminate].
        injection OE as -> <-. fold k.
        destruct (buffer_element (S k) (sinks (instr_of i)) b (s + k)) as [l|] eqn:E.
        -- destruct (buffer_element_some _ _ _ _ _ E) as (Q & t & IT & X).
           pose proof (f_aligned D i (Buf b t) (Buf b s) K IT ltac:(apply in_or_app; now left) eq_refl). do 2 f_equal.
           lia.
        -- exfalso. now apply (buffer_element_here (S k) _ b s (s + k) IO ltac:(lia)).
      * rewrite (m_buffers _ M), (running (done st) i IV C (done st)) by auto. fold k.
        replace (buffer_element (S k) (sinks (instr_of i)) b x) with (buffer_element k (sinks (instr_of i)) b x); auto.
        assert (G : forall s, In (Buf b s) (sinks (instr_of i)) -> x <> s + k).
        { intros s I X. apply O, in_map_iff. exists (Buf b s). cbn. fold k. split; [congruence|auto]. }
        revert G. generalize (sinks (instr_of i)). induction l as [|[b' s|s] l IH]; cbn; intros G; auto.
        rewrite <- IH by auto. destruct (Nat.eqb_spec b' b) as [->|]; cbn; auto. specialize (G s (or_introl eq_refl)).
        destruct (Nat.leb_spec s x); cbn; auto. destruct (Nat.ltb_spec x (s + k)), (Nat.ltb_spec x (s + S k)); auto;
        lia.
    + destruct in_dec as [I|O].
      * apply in_map_iff in I as (o & OE & _). destruct o; cbn in OE; [|discriminate]. congruence.
      * rewrite (m_buffers _ M). apply contents_same. intros j _ J. rewrite upd_other; auto. congruence.
  - intros j l s J LD P.
    assert (LL : l < len (instr_of j)).
    { unfold upd in LD. destruct (Nat.eqb_spec j i) as [->|]; [lia|]. pose proof (v_len _ _ IV j J). lia. }
    destruct in_dec as [I|O].
    + apply in_map_iff in I as (o & OE & IO). destruct o as [b t|t]; cbn in OE; [discriminate|]. injection OE as -> X.
      apply in_streams in IO. rewrite (pushed_current sc (done st) i s (f_ends D) IV C IO) in X.
      destruct (one_pusher i j k l s) as [-> ->]; auto. unfold k. lia.
    + apply (m_streams _ M); auto. unfold upd in LD. destruct (Nat.eqb_spec j i) as [->|]; auto. fold k in LD.
      destruct (Nat.eq_dec l k) as [->|]; [|lia]. exfalso. apply O, in_map_iff. exists (Str s). cbn.
      split; [|now apply in_streams]. now rewrite (pushed_current sc (done st) i s (f_ends D) IV C P).
Qed.

(** Everything but the results, which depend on the collective. *)
Theorem flow_correct :
  (forall st, reach sc (inputs c) st -> final sc st -> complete c (mem st)) -> correct sc c scratch.
Proof.
  intros RES. constructor; auto.
  - intros st H. destruct (flows_on (done st) (reach_inv _ _ _ H)) as [F|F]; auto.
  - intros n st. apply executions_end.
  - intros i j I J LN EN. exfalso. apply LN. now apply (f_one D).
  - intros st i o H RD I. rewrite (sources_filled st i (reach_inv _ _ _ H) (reach_filled st H) RD o I).
    pose proof (r_left _ _ _ _ RD). pose proof (f_value D i (done st i) (r_known _ _ _ _ RD) ltac:(lia)) as E.
    apply value_all in E. intros N. apply E. rewrite <- N. now apply in_map.
  - intros i o b s I IO ->. now apply (f_inside D).
  - apply (f_kept D).
Qed.

(** The contents of the buffers at the end. *)
Lemma final_contents : forall st n b x, reach sc (inputs c) st -> final sc st -> mem st (PBuf n b x) = before n (count
  sc) b x.
Proof.
  intros st n b x H F. rewrite (m_buffers _ (reach_filled st H)). apply contents_same. intros j J _. now apply F.
Qed.

End Flow.
