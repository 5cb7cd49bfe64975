(** The model of schedules and of their execution, as docs/proofs.md states it.

    A schedule is a table of instructions and a table of streams. The instructions of a lane run in the order of their
    numbers, lanes run independently, and a stream delivers its elements to each of its readers once, in order. One step
    of an execution moves one element of one instruction: the element is read from all sources, then it becomes visible
    in all sinks. Any lane that can move may move next. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.

(** A source or a sink: a buffer (0 input, 1 output, 2 scratch) from a first element on, or a stream. *)
Inductive operand := Buf (buffer start : nat) | Str (stream : nat).

Record instr := {
  node : nat; lane : nat; len : nat;
  sources : list operand; sinks : list operand;
  (** The instructions that must be complete before this one starts. *)
  after : list nat }.

(** A capacity of [None] has room for all elements of the stream. *)
Record stream := { origin : nat; readers : list nat; capacity : option nat }.

Record schedule := { count : nat; ins : nat -> instr; streams : nat -> stream }.

(** An expression over contributions: element [element] of the input of [rank], or a combination of two expressions. *)
Inductive tree := Leaf (rank element : nat) | Node (left right : tree).

(** A place: element [at] of a buffer of a node, or the element that is number [at] in a stream. *)
Inductive place := PBuf (node buffer at_ : nat) | PStr (stream at_ : nat).

Fixpoint sum (n : nat) (f : nat -> nat) : nat :=
  match n with 0 => 0 | S m => sum m f + f m end.

Definition upd {A} (f : nat -> A) (i : nat) (v : A) : nat -> A := fun j => if j =? i then v else f j.

Fixpoint streams_of (os : list operand) : list nat :=
  match os with [] => [] | Str s :: r => s :: streams_of r | Buf _ _ :: r => streams_of r end.

Definition mentions (os : list operand) (s : nat) : bool := existsb (Nat.eqb s) (streams_of os).
Definition pushes (i : instr) (s : nat) : bool := mentions (sinks i) s.
Definition pops (i : instr) (s : nat) : bool := mentions (sources i) s.

Section Execution.
Variable sc : schedule.

(** The progress of an execution: the number of elements that each instruction has moved. *)
Definition progress := nat -> nat.

(** The elements pushed to a stream so far. *)
Definition pushed (d : progress) (s : nat) : nat :=
  sum (count sc) (fun i => if pushes (ins sc i) s then d i else 0).

(** The elements that a node has popped from a stream so far. *)
Definition popped (d : progress) (s n : nat) : nat :=
  sum (count sc) (fun i => if pops (ins sc i) s && (node (ins sc i) =? n) then d i else 0).

(** Instruction [i] is the next of its lane, waits for nothing, and finds [c] elements in each source stream and room
    for [c] elements in each sink stream. *)
Record ready (d : progress) (i c : nat) : Prop := {
  r_known : i < count sc;
  r_left : d i + c <= len (ins sc i);
  r_lane : forall j, j < i -> lane (ins sc j) = lane (ins sc i) -> d j = len (ins sc j);
  r_after : forall j, In j (after (ins sc i)) -> j < count sc /\ d j = len (ins sc j);
  r_sources : forall s, pops (ins sc i) s = true -> popped d s (node (ins sc i)) + c <= pushed d s;
  r_room : forall s n cap, pushes (ins sc i) s = true -> In n (readers (streams sc s)) ->
    capacity (streams sc s) = Some cap -> pushed d s + c <= popped d s n + cap }.

Definition memory := place -> option tree.

Record state := { done : progress; mem : memory }.

(** The place of a source of the next element of [i]: a stream gives the element after those that the node has popped. *)
Definition read_place (d : progress) (i : nat) (o : operand) : place :=
  match o with
  | Buf b start => PBuf (node (ins sc i)) b (start + d i)
  | Str s => PStr s (popped d s (node (ins sc i)))
  end.

(** The place of a sink of the next element of [i]: a stream takes it after the elements already pushed. *)
Definition write_place (d : progress) (i : nat) (o : operand) : place :=
  match o with
  | Buf b start => PBuf (node (ins sc i)) b (start + d i)
  | Str s => PStr s (pushed d s)
  end.

(** The combination of two values; a place that nothing has written has no value, and neither has its combination. *)
Definition combine (a b : option tree) : option tree :=
  match a, b with Some x, Some y => Some (Node x y) | _, _ => None end.

Definition value (vs : list (option tree)) : option tree :=
  match vs with [] => None | v :: r => fold_left combine r v end.

Definition place_eq_dec (p q : place) : {p = q} + {p <> q}.
Proof. decide equality; apply Nat.eq_dec. Defined.

Definition written (m : memory) (ps : list place) (v : option tree) : memory :=
  fun p => if in_dec place_eq_dec p ps then v else m p.

(** The state after [i] has moved its next element. *)
Definition move (st : state) (i : nat) : state :=
  let v := value (map (fun o => mem st (read_place (done st) i o)) (sources (ins sc i))) in
  {| done := upd (done st) i (S (done st i));
     mem := written (mem st) (map (write_place (done st) i) (sinks (ins sc i))) v |}.

Inductive step (st : state) : state -> Prop :=
  | step_move : forall i, ready (done st) i 1 -> step st (move st i).

(** The states that an execution can reach from the memory [m0]. *)
Inductive reach (m0 : memory) : state -> Prop :=
  | reach_start : reach m0 {| done := fun _ => 0; mem := m0 |}
  | reach_step : forall st st', reach m0 st -> step st st' -> reach m0 st'.

(** All instructions are complete. *)
Definition final (st : state) : Prop := forall i, i < count sc -> done st i = len (ins sc i).

End Execution.
