(* Prints the streams and instructions of a family of schedules as the proofs define it, in the text form, so that they
   can be compared with those that Unisono makes. Instructions of no elements are left out, as they do nothing. *)
open Checker

let operand length = function
  | Str s -> Printf.sprintf "s%d" s
  | Buf (b, s) -> Printf.sprintf "%s[%d..%d]" (match b with 0 -> "in" | 1 -> "out" | _ -> "tmp") s (s + length)

let print ranks { count; ins; streams } =
  for s = 0 to ranks - 1 do
    let { origin; readers; _ } = streams s in
    Printf.printf "stream s%d: %d ->%s\n" s origin (String.concat "" (List.map (Printf.sprintf " %d") readers))
  done;
  let number = ref 0 and last = ref (-1) in
  for i = 0 to count - 1 do
    let x = ins i in
    if x.node <> !last then Printf.printf "node %d:\n" x.node;
    last := x.node;
    if x.len > 0 then begin
      let text separator os = String.concat separator (List.map (operand x.len) os) in
      let memory = List.exists (function Buf _ -> true | Str _ -> false) (x.sources @ x.sinks) in
      Printf.printf "  i%d: %s -> %s%s\n" !number (text " + " x.sources) (text ", " x.sinks)
        (if memory then "" else Printf.sprintf " len=%d" x.len);
      incr number
    end
  done

let () =
  let family = Sys.argv.(1) and ranks = int_of_string Sys.argv.(2) and elements = int_of_string Sys.argv.(3) in
  let make = match family with
    | "allgather" -> ring_allgather
    | "reduce-scatter" -> ring_reduce_scatter
    | "allreduce" -> ring_allreduce
    | other -> failwith (other ^ " is no family") in
  print ranks (make ranks elements)
