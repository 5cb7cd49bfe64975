(** Reductions up a tree, for every number of ranks, every root and every list of segments. The top of the tree is the
    root, or rank 0 if the operator does not commute; rank 0 then sends the result to the root. *)
From Unisono Require Import Families.

Section Reduce.
(** [P] ranks; the result goes from [top], where the virtual ranks begin, to [root]; [T] segments, of which number [j]
    is from element [start j] on; the children of a virtual rank, fewer than [C]. *)
Variables P top root T C : nat.
Variable children : nat -> list nat.
Variable parent : nat -> nat.
Variable start : nat -> nat.
Notation virtual := (virtual P top).
Notation real := (real P top).

Notation L := (segment start).

(** The place of a partial sum. *)
Definition partial (q j : nat) : operand :=
  if (1 <? length (children (virtual q))) && negb (q =? root) then Buf 2 0 else Buf 1 (start j).
(** The sink of the whole sum of a subtree. *)
Definition upward (v j : nat) : operand :=
  if v =? 0 then if top =? root then Buf 1 (start j) else Str (P - 1) else Str (v - 1).

(** A rank without children sends its input in slot 0; slot [S k] adds the sum of child [k]. *)
Definition add (q j m : nat) : slot :=
  let ch := children (virtual q) in
  {| size := L j;
     from := (if m <=? 1 then Buf 0 (start j) else partial q j) :: match m with 0 => [] | S k => [Str (nth k ch 0 - 1)]
       end;
     into := [if m =? length ch then upward (virtual q) j else partial q j] |}.
Definition home (j : nat) : slot := {| size := L (j - T); from := [Str (P - 1)]; into := [Buf 1 (start (j - T))] |}.

Definition reduce_row (q j m : nat) : slot :=
  let children := length (children (virtual q)) in
  if j <? T then if if m =? 0 then children =? 0 else m <=? children then add q j m else nothing
  else if (m =? 0) && (q =? root) && negb (top =? root) then home j else nothing.

(** Stream [s] leads from virtual rank [S s] to its parent; the last one leads from the top to the root. *)
Definition reduce_ports (s : nat) : nat * nat := if s =? P - 1 then (top, root) else (real (S s), real (parent (S s))).
Definition tree_reduce : schedule := rows P (T + T) C reduce_row reduce_ports.

Variable n : nat.
Variable in_order : bool.
Variable scratch : nat -> nat.
Variable subtree : nat -> nat.
Hypothesis TOP : top < P.
Hypothesis ROOT : root < P.
Hypothesis A : ascending start.
Hypothesis Z : start 0 = 0.
Hypothesis N : start T = n.
Hypothesis ORD : in_order = true -> top = 0.
Hypothesis SCRATCH : forall q j, q < P -> j < T -> 1 < length (children (virtual q)) -> q <> root -> L j <= scratch q.
Hypothesis child_of : forall v w, v < P -> In w (children v) <-> 0 < w < P /\ parent w = v.
Hypothesis below : forall w, 0 < w -> parent w < w.
Hypothesis once : forall v, v < P -> NoDup (children v).
Hypothesis few : forall v, length (children v) < C.
Hypothesis spans : forall v, v < P -> flat_map (fun w => seq w (subtree w)) (children v) = seq (S v) (subtree v - 1).
Hypothesis own : forall v, v < P -> 0 < subtree v.
Hypothesis all : subtree 0 = P.

Definition rc : collective := {| what := Reduce; ranks := P; elems := n; Collective.root := root;
  ordered := in_order |}.

(** The expression of a subtree, and that of the input of a rank with the first [m] children. *)
Fixpoint total (fuel v e : nat) : tree :=
  match fuel with
  | 0 => Leaf (real v) e
  | S f => fold_left (fun t w => Node t (total f w e)) (children v) (Leaf (real v) e)
  end.
Definition sum_of (m v e : nat) : tree := fold_left (fun t w => Node t (total P w e)) (firstn m (children v)) (Leaf
  (real v) e).

Lemma fold_same : forall (f g : nat -> tree) l t, (forall w, In w l -> f w = g w) ->
  fold_left (fun t w => Node t (f w)) l t = fold_left (fun t w => Node t (g w)) l t.
Proof. induction l as [|w l IH]; intros t H; cbn; auto. rewrite (H w) by (now left). apply IH. intros. apply H.
  now right. Qed.

Lemma child_above : forall v w, v < P -> In w (children v) -> v < w < P /\ 0 < w.
Proof. intros v w B I. apply child_of in I as [W E]; auto. pose proof (below w ltac:(lia)). lia. Qed.

Lemma total_same : forall f g v e, v < P -> P - v <= f -> P - v <= g -> total f v e = total g v e.
Proof.
  induction f; intros g v e B F G; [lia|]. destruct g; [lia|]. cbn [total]. apply fold_same. intros w I.
  destruct (child_above v w B I). apply IHf; lia.
Qed.

Lemma total_sum : forall v e, v < P -> total P v e = sum_of (length (children v)) v e.
Proof.
  intros v e B. rewrite (total_same P (S P)) by lia. cbn [total]. unfold sum_of. now rewrite firstn_all.
Qed.

Lemma sum_more : forall k v e, k < length (children v) -> sum_of (S k) v e = Node (sum_of k v e) (total P (nth k
  (children v) 0) e).
Proof. intros k v e K. unfold sum_of. rewrite (firstn_more k _ 0) by auto. now rewrite fold_left_app. Qed.

(** The values, what streams bring, and the numbers. *)
Definition V (q j m k : nat) : tree :=
  if j <? T then sum_of m (virtual q) (start j + k) else total P 0 (start (j - T) + k).
Definition got (q j m s k : nat) : tree := if j <? T then total P (S s) (start j + k) else total P 0 (start (j - T) +
  k).
Definition time (q j m : nat) : nat := if j <? T then (j + P - virtual q) * C + m else (j + P) * C + m.

Notation virtual_lt := (virtual_lt P top TOP).
Notation real_lt := (real_lt P top TOP).
Notation real_virtual := (real_virtual P top TOP).
Notation virtual_real := (virtual_real P top TOP).
Notation virtual_zero := (virtual_zero P top TOP).

Inductive at_slot (q j m : nat) : slot -> Prop :=
  | at_nothing : at_slot q j m nothing
  | at_add : j < T -> m <= length (children (virtual q)) -> (m = 0 -> children (virtual q) = []) -> at_slot q j m (add q
    j m)
  | at_home : T <= j -> m = 0 -> q = root -> top <> root -> at_slot q j m (home j).

Lemma row_cases : forall q j m, at_slot q j m (reduce_row q j m).
Proof.
  intros q j m. unfold reduce_row. destruct (Nat.ltb_spec j T).
  - destruct (Nat.eqb_spec m 0) as [->|].
    + destruct (Nat.eqb_spec (length (children (virtual q))) 0) as [E|]; [|constructor]. apply length_zero_iff_nil in E.
      constructor; auto; lia.
    + destruct (Nat.leb_spec m (length (children (virtual q)))); constructor; auto; lia.
  - destruct (Nat.eqb_spec m 0), (Nat.eqb_spec q root), (Nat.eqb_spec top root); cbn; constructor; auto.
Qed.

Lemma row_add : forall q j m, j < T -> m <= length (children (virtual q)) -> (m = 0 -> children (virtual q) = []) ->
  reduce_row q j m = add q j m.
Proof.
  intros q j m J M E. unfold reduce_row. destruct (Nat.ltb_spec j T); [|lia]. destruct (Nat.eqb_spec m 0) as [->|].
  - now rewrite (E eq_refl).
  - destruct (Nat.leb_spec m (length (children (virtual q)))); [auto|lia].
Qed.

Lemma row_home : forall j, T <= j -> top <> root -> reduce_row root j 0 = home j.
Proof.
  intros j J NE. unfold reduce_row. destruct (Nat.ltb_spec j T); [lia|]. rewrite !Nat.eqb_refl.
  destruct (Nat.eqb_spec top root); [contradiction|]. reflexivity.
Qed.

(** The streams of a row. *)
Lemma row_pushes : forall q j m s, q < P -> mentions (into (reduce_row q j m)) s = true ->
  j < T /\ m = length (children (virtual q)) /\
  (S s = virtual q \/ virtual q = 0 /\ s = P - 1 /\ top <> root).
Proof.
  intros q j m s Q H. apply in_streams in H. destruct (row_cases q j m) as [|J M E|J M QR TR]; cbn in H; try tauto.
  - destruct H as [H|[]]. destruct (Nat.eqb_spec m (length (children (virtual q)))) as [->|].
    + split; auto. split; auto. unfold upward in H. destruct (Nat.eqb_spec (virtual q) 0).
      * destruct (Nat.eqb_spec top root); [discriminate|]. injection H as <-. auto.
      * injection H as <-. left. lia.
    + unfold partial in H. destruct (_ && _); discriminate.
  - destruct H as [H|[]]. discriminate.
Qed.

Lemma row_pops : forall q j m s, mentions (from (reduce_row q j m)) s = true ->
  j < T /\ (exists k, m = S k /\ k < length (children (virtual q)) /\ s = nth k (children (virtual q)) 0 - 1) \/
  T <= j /\ m = 0 /\ q = root /\ top <> root /\ s = P - 1.
Proof.
  intros q j m s H. apply in_streams in H. destruct (row_cases q j m) as [|J M E|J M QR TR]; cbn in H; try tauto.
  - left. split; auto. destruct H as [H|H].
    + exfalso. destruct (m <=? 1); [discriminate|]. unfold partial in H. destruct (_ && _); discriminate.
    + destruct m as [|k]; [contradiction|]. destruct H as [H|[]]. injection H as <-. exists k. split; auto.
  - right. destruct H as [H|[]]. injection H as <-. auto.
Qed.

Lemma pushes_at : forall q j s, q < P -> j < T -> S s = virtual q -> mentions (into (reduce_row q j (length (children
  (virtual q))))) s = true.
Proof.
  intros q j s Q J E. rewrite row_add; auto.
  - apply in_streams. left. rewrite Nat.eqb_refl. unfold upward. destruct (Nat.eqb_spec (virtual q) 0); [lia|].
    f_equal. lia.
  - intros H. now apply length_zero_iff_nil.
Qed.

Lemma pushes_home : forall j, j < T -> top <> root -> mentions (into (reduce_row top j (length (children (virtual
  top))))) (P - 1) = true.
Proof.
  intros j J NE. assert (E : virtual top = 0) by now apply virtual_zero. rewrite row_add; auto.
  - apply in_streams. left. rewrite Nat.eqb_refl, E. unfold upward. rewrite Nat.eqb_refl.
    destruct (Nat.eqb_spec top root); tauto.
  - intros H. now apply length_zero_iff_nil.
Qed.

Lemma child_at : forall v k, v < P -> k < length (children v) -> v < nth k (children v) 0 < P /\ parent (nth k (children
  v) 0) = v.
Proof.
  intros v k B K. pose proof (nth_In (children v) 0 K) as I. destruct (child_above v _ B I).
  apply child_of in I as [_ E]; auto.
Qed.

Lemma reduce_sizes : forall r, r < P -> input_size rc r = n /\ output_size rc r = if r =? root then n else 0.
Proof. intros r. apply (sizes_of rc). Qed.

Lemma not_input : forall q j m s, ~ In (Buf 0 s) (into (reduce_row q j m)).
Proof.
  intros q j m s H. destruct (row_cases q j m) as [|J M E|J M QR TR]; cbn in H; try tauto; destruct H as [H|[]];
  [|discriminate].
  unfold partial, upward in H. repeat match type of H with context [if ?b then _ else _] => destruct b end;
  discriminate.
Qed.

Lemma lengths : forall q m s, q < P -> mentions (into (reduce_row q 0 m)) s = true \/ True ->
  forall j, j <= T -> m = length (children (virtual q)) -> (S s = virtual q \/ virtual q = 0 /\ s = P - 1 /\ top <>
    root) ->
  sum j (pushed_by reduce_row q m s) = sum j L.
Proof.
  intros q m s Q _ j J -> E. apply sum_ext. intros u U. unfold pushed_by.
  assert (H : mentions (into (reduce_row q u (length (children (virtual q))))) s = true).
  { destruct E as [E|(E & -> & NE)]; [apply pushes_at; auto; lia|]. apply virtual_zero in E; auto. subst q.
    apply pushes_home; auto; lia. }
  rewrite H, row_add; auto; [lia|]. intros X. now apply length_zero_iff_nil.
Qed.

Lemma reduce_in_rows : in_rows P (T + T) C reduce_row reduce_ports rc scratch V got time.
Proof.
  constructor.
  - intros q j m b s Q J M I. destruct (row_cases q j m) as [|JT ML E|JT ME QR TR];
    cbn [from into size add home nothing] in *.
    + contradiction.
    + pose proof (segment_fits start T n A N j JT) as F. destruct (reduce_sizes q Q) as [IN OUT]. unfold room.
      assert (PART : forall b s, partial q j = Buf b s -> q = root \/ 1 < length (children (virtual q)) ->
        s + L j <= match b with 0 => input_size rc q | 1 => output_size rc q | 2 => scratch q | _ => 0 end).
      { clear I b s. intros b s H C1. unfold partial in H. destruct (Nat.ltb_spec 1 (length (children (virtual q)))).
        - destruct (Nat.eqb_spec q root) as [->|NE]; injection H as <- <-; [rewrite OUT; auto|]. cbn.
          apply SCRATCH; auto.
        - destruct C1 as [->|]; [|lia]. injection H as <- <-. rewrite OUT, Nat.eqb_refl. auto. }
      cbn [app] in I. destruct I as [I|I].
      * destruct (Nat.leb_spec m 1); [injection I as <- <-; lia|]. apply PART; auto. right. lia.
      * apply in_app_or in I as [I|I].
        -- destruct m; [contradiction|]. destruct I as [I|[]]. discriminate.
        -- destruct I as [I|[]]. destruct (Nat.eqb_spec m (length (children (virtual q)))) as [->|].
           ++ unfold upward in I. destruct (Nat.eqb_spec (virtual q) 0) as [V0|]; [|discriminate].
              destruct (Nat.eqb_spec top root) as [TR|]; [|discriminate]. injection I as <- <-.
              apply virtual_zero in V0; auto. subst q.
              rewrite OUT. rewrite TR, Nat.eqb_refl. lia.
           ++ apply PART; auto. right. destruct m; [|lia]. exfalso. rewrite E in * by auto. cbn in *. lia.
    + destruct I as [I|[I|[]]]; [discriminate|]. injection I as <- <-. subst q. cbn.
      rewrite (proj2 (reduce_sizes root ROOT)), Nat.eqb_refl.
      apply (segment_fits start T n A N). lia.
  - intros q j m s _ _ _. apply not_input.
  - intros q j m o p Q J M IO IP. destruct (row_cases q j m) as [|JT ML E|JT ME QR TR];
    cbn [from into size add home nothing] in *.
    + contradiction.
    + destruct IO as [<-|[]]. assert (S1 : forall b s,
      In (Buf b s) [if m =? length (children (virtual q)) then upward (virtual q) j else partial q j; partial q j] ->
        b = 1 /\ s = start j \/ b = 2 /\ s = 0).
      { intros b s [H|[H|[]]]; revert H; unfold upward, partial;
          repeat match goal with |- context [if ?b then _ else _] => destruct b end; intros H; try discriminate;
            injection H as <- <-; auto. }
      destruct (if m =? length (children (virtual q)) then upward (virtual q) j else partial q j) as [b s|s] eqn:O;
      [|exact Logic.I].
      pose proof (S1 b s ltac:(now left)) as SB. destruct p as [b' s'|]; [|exact Logic.I]. intros <-.
      cbn [app] in IP. destruct IP as [IP|[IP|IP]].
      * left. congruence.
      * destruct (m <=? 1); [injection IP as <- <-; lia|]. pose proof (S1 b s' ltac:(right; now left)). left. lia.
      * destruct m; [contradiction|]. destruct IP as [IP|[]]. discriminate.
    + destruct IO as [<-|[]]. destruct IP as [<-|[<-|[]]]; cbn; auto.
  - intros q j m q' j' m' s Q J M Q' J' M' X Y. apply row_pushes in X as (JT & -> & X); auto.
    apply row_pushes in Y as (_ & -> & Y); auto.
    pose proof (virtual_lt q Q). pose proof (virtual_lt q' Q'). assert (E : virtual q = virtual q') by lia.
    rewrite E. split; auto. rewrite <- (real_virtual q), <- (real_virtual q') by auto. congruence.
  - intros q j m j' m' s Q J M J' M' X Y. pose proof (virtual_lt q Q) as VQ.
    apply row_pops in X as [(JT & k & -> & K & X)|(JT & -> & _ & _ & X)];
    apply row_pops in Y as [(JT' & l & -> & K' & Y)|(JT' & -> & _ & _ & Y)]; auto.
    + f_equal. pose proof (child_at (virtual q) k VQ K). pose proof (child_at (virtual q) l VQ K').
      apply (NoDup_nth (children (virtual q)) 0); auto. lia.
    + pose proof (child_at (virtual q) k VQ K). lia.
    + pose proof (child_at (virtual q) l VQ K'). lia.
  - intros q j m s Q J M X. pose proof (virtual_lt q Q) as VQ. pose proof X as X0.
    apply row_pops in X as [(JT & k & -> & K & X)|(JT & -> & -> & TR & X)].
    + destruct (child_at (virtual q) k VQ K) as [B PE]. set (w := nth k (children (virtual q)) 0) in *.
      assert (VR : virtual (real w) = w) by (apply virtual_real; lia). pose proof (real_lt w ltac:(lia)) as RL.
      assert (SW : S s = w) by lia. pose proof (few w) as FW.
      exists (real w), j, (length (children w)). split; auto. split; auto. split; auto.
      split; [|split; [|split; [|split]]].
      * rewrite <- VR at 2. apply pushes_at; auto. lia.
      * rewrite <- VR at 1. rewrite VR at 1. rewrite (lengths (real w)); auto; rewrite ?VR; auto; [|lia].
        apply sum_ext. intros u U. unfold popped_by. rewrite row_add; [|lia|lia|lia].
        replace (mentions (from (add q u (S k))) s) with true; auto. symmetry. apply in_streams. right. left. cbn.
        f_equal. unfold w in *. lia.
      * rewrite !row_add; auto; try lia; rewrite VR; auto. intros H. now apply length_zero_iff_nil.
      * unfold time. destruct (Nat.ltb_spec j T); [|lia]. rewrite VR. nia.
      * intros e E. unfold got, V. destruct (Nat.ltb_spec j T); [|lia]. rewrite SW, VR. apply total_sum. lia.
    + pose proof (few (virtual top)) as FW. assert (V0 : virtual top = 0) by now apply virtual_zero.
      exists top, (j - T), (length (children (virtual top))). split; auto. split; [lia|]. split; auto.
      split; [|split; [|split; [|split]]].
      * subst s. apply pushes_home; auto. lia.
      * rewrite (lengths top); auto; [|lia]. replace j with (T + (j - T)) at 2 by lia. rewrite sum_split, (sum_zero T).
        -- cbn. apply sum_ext. intros u U. unfold popped_by. rewrite row_home by (auto; lia). cbn.
           replace (T + u - T) with u by lia. subst s. now rewrite Nat.eqb_refl.
        -- intros u U. unfold popped_by. destruct (mentions (from (reduce_row root u 0)) s) eqn:E; auto.
           apply row_pops in E as [(_ & k & H & _)|(H & _)]; [discriminate|lia].
      * rewrite row_add, row_home; auto; try lia. intros H. now apply length_zero_iff_nil.
      * unfold time. destruct (Nat.ltb_spec j T); [lia|]. destruct (Nat.ltb_spec (j - T) T); [|lia]. rewrite V0 in *.
        nia.
      * intros e E. unfold got, V. destruct (Nat.ltb_spec j T); [lia|]. destruct (Nat.ltb_spec (j - T) T); [|lia].
        rewrite V0. apply total_sum. lia.
  - intros q j m j' m' Q J M M' EA. pose proof (virtual_lt q Q). unfold time, earlier in *.
    destruct (Nat.ltb_spec j T), (Nat.ltb_spec j' T); nia.
  - intros q j m k Q J M K. pose proof (virtual_lt q Q) as VQ. destruct (row_cases q j m) as [|JT ML E|JT ME QR TR];
    cbn [from into size add home nothing] in *.
    + lia.
    + assert (IN : held P (T + T) C reduce_row reduce_ports rc V q j m 0 (start j + k) = Some (Leaf q (start j + k))).
      { rewrite held_input; auto; [|intros; apply not_input]. cbn. rewrite (proj1 (reduce_sizes q Q)).
        pose proof (segment_fits start T n A N j JT). destruct (Nat.ltb_spec (start j + k) n); [auto|lia]. }
      assert (V1 : V q j m k = sum_of m (virtual q) (start j + k)) by (unfold V; destruct (Nat.ltb_spec j T);
      [auto|lia]).
      assert (Z1 : sum_of 0 (virtual q) (start j + k) = Leaf q (start j + k)) by (unfold sum_of; cbn;
      now rewrite real_virtual).
      rewrite V1. destruct m as [|[|m]].
      * change (0 <=? 1) with true. cbn [map source_at]. rewrite IN, Z1. reflexivity.
      * change (1 <=? 1) with true. cbn [map]. cbn [source_at]. rewrite IN. cbn [value fold_left combine]. unfold got.
        destruct (Nat.ltb_spec j T); [|lia]. rewrite sum_more by lia. rewrite Z1. do 2 f_equal.
        pose proof (child_at (virtual q) 0 VQ ltac:(lia)). f_equal. lia.
      * destruct (Nat.leb_spec (S (S m)) 1); [lia|].
        assert (PART : source_at P (T + T) C reduce_row reduce_ports rc V got q j (S (S m)) k (partial q j) =
          Some (sum_of (S m) (virtual q) (start j + k))).
        { destruct (partial q j) as [b s|s] eqn:PB; [|unfold partial in PB; destruct (_ && _); discriminate].
          cbn [source_at].
          assert (R1 : reduce_row q j (S m) = add q j (S m)) by (apply row_add; auto; lia).
          assert (I1 : into (reduce_row q j (S m)) = [Buf b s]).
          { rewrite R1. cbn. destruct (Nat.eqb_spec (S m) (length (children (virtual q)))); [lia|]. now rewrite PB. }
          unfold held. rewrite (last_written P (T + T) C reduce_row reduce_ports rc V _ q j (S m)).
          - unfold V. destruct (Nat.ltb_spec j T); [auto|lia].
          - auto.
          - auto.
          - lia.
          - pose proof (index_lt P (T + T) C q j (S (S m)) Q J M). lia.
          - apply index_earlier; [lia|lia|right; lia].
          - rewrite I1. intros t [X|[]]. congruence.
          - rewrite I1. now left.
          - now rewrite R1.
          - intros j' m' J' M' E1 E2. apply index_earlier in E2; [|lia|lia]. unfold earlier in *. lia. }
        cbn [map]. rewrite PART. cbn [source_at value fold_left combine]. unfold got.
        destruct (Nat.ltb_spec j T); [|lia].
        rewrite (sum_more (S m)) by lia. do 2 f_equal. pose proof (child_at (virtual q) (S m) VQ ltac:(lia)). f_equal.
        lia.
    + cbn. unfold got, V. destruct (Nat.ltb_spec j T); [lia|]. reflexivity.
Qed.

(** The contributions of a subtree are those of its ranks in ascending order. *)
Lemma total_leaves : forall f v e, v < P -> P - v <= f -> leaves (total f v e) = contributions e (map real (seq v
  (subtree v))).
Proof.
  induction f; intros v e B F; [lia|]. cbn [total]. rewrite leaves_fold.
  rewrite (flat_map_same _ _ _ (fun w => contributions e (map real (seq w (subtree w))))).
  - rewrite flat_map_contributions, flat_map_map, spans by auto. pose proof (own v B).
    replace (subtree v) with (S (subtree v - 1)) at 2 by lia. reflexivity.
  - intros w I. destruct (child_above v w B I). apply IHf; lia.
Qed.

Theorem tree_reduce_correct : correct tree_reduce rc scratch.
Proof.
  pose proof (rows_flow _ _ _ _ _ _ _ _ _ _ reduce_in_rows) as FL. apply (flow_correct _ _ _ _ _ _ FL).
  intros st H F r d k R DI KL.
  cbn [ranks rc] in R. unfold required in DI. rewrite (proj2 (reduce_sizes r R)) in DI.
  destruct (Nat.eqb_spec r root) as [->|]; [|contradiction].
  one_demand d k n {| d_from := 0; d_len := n; d_element := 0; d_first := 0; d_ranks := P |} DI KL.
  destruct (block_of start T k A) as (j & J & RNG); [lia|lia|].
  rewrite (final_contents _ _ _ _ _ _ FL) by auto. exists (total P 0 k). split.
  - replace k with (start j + (k - start j)) at 1 by lia. destruct (Nat.eq_dec top root) as [TR|TR].
    + assert (V0 : virtual root = 0) by now apply virtual_zero. set (m := length (children (virtual root))).
      assert (RA : reduce_row root j m = add root j m) by (apply row_add; auto; intros X;
      now apply length_zero_iff_nil).
      assert (IA : into (reduce_row root j m) = [Buf 1 (start j)]).
      { rewrite RA. cbn. fold m. rewrite Nat.eqb_refl, V0. unfold upward. rewrite Nat.eqb_refl, TR, Nat.eqb_refl.
        reflexivity. }
      unfold tree_reduce. rewrite (last_written P (T + T) C reduce_row reduce_ports rc V _ root j m).
      * unfold V. destruct (Nat.ltb_spec j T); [|lia]. f_equal. rewrite V0. unfold m. rewrite V0.
        rewrite <- total_sum by lia. f_equal. lia.
      * auto.
      * lia.
      * apply few.
      * reflexivity.
      * apply index_lt; auto; [lia|apply few].
      * rewrite IA. intros t [X|[]]. congruence.
      * rewrite IA. now left.
      * rewrite RA. cbn. unfold segment. lia.
      * intros j' m' J' M' E1 _ t IT. destruct (row_cases root j' m') as [|JT ML E|JT ME QR TX];
        cbn [from into size add home nothing] in *.
        -- contradiction.
        -- assert (X : t = start j').
           { destruct IT as [X|[]]. revert X. unfold upward,
             partial. repeat match goal with |- context [if ?b then _ else _] => destruct b end; congruence. }
           subst t. destruct (Nat.eq_dec j' j) as [->|]; [unfold earlier, m in *; lia|].
             replace (start j + (k - start j)) with k by lia. apply (segment_apart start j j' k A RNG). auto.
        -- contradiction.
    + assert (RH : reduce_row root (T + j) 0 = home (T + j)) by (apply row_home; auto; lia).
      unfold tree_reduce. rewrite (last_written P (T + T) C reduce_row reduce_ports rc V _ root (T + j) 0).
      * unfold V. destruct (Nat.ltb_spec (T + j) T); [lia|]. do 2 f_equal. replace (T + j - T) with j by lia. lia.
      * auto.
      * lia.
      * pose proof (few 0). lia.
      * reflexivity.
      * apply index_lt; auto; [lia|]. pose proof (few 0). lia.
      * rewrite RH. cbn. replace (T + j - T) with j by lia. intros t [X|[]]. congruence.
      * rewrite RH. cbn. replace (T + j - T) with j by lia. now left.
      * rewrite RH. cbn. replace (T + j - T) with j by lia. unfold segment. lia.
      * intros j' m' J' M' E1 _ t IT. destruct (row_cases root j' m') as [|JT ML E|JT ME QR TX];
        cbn [from into size add home nothing] in *.
        -- contradiction.
        -- unfold earlier in E1. lia.
        -- destruct IT as [X|[]]. injection X as <-. replace (start j + (k - start j)) with k by lia.
           apply (segment_apart start j (j' - T) k A RNG). unfold earlier in E1. lia.
  - rewrite total_leaves, all, real_all by lia. unfold alike. cbn [what ordered rc]. destruct in_order.
    + rewrite (ORD eq_refl), Nat.sub_0_r, app_nil_r. reflexivity.
    + apply Permutation_map. rewrite Permutation_app_comm. rewrite <- (seq_app top).
      replace (top + (P - top)) with P by lia. reflexivity.
Qed.

End Reduce.
