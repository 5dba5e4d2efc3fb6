#pragma once

#include <optional>

#include "tw/emit/cuda/nest.h"

namespace tw::cuda {

/// Computes the op's result and keeps it: in registers, in memory where some use reads it at
/// other places, or both.
void emit_kept(State& s, const Op& op, Writer& out);
/// Keeps elements that `element` gives inside a nest, as the results of other statements are.
void keep_elements(State& s, ValueId v, const std::function<Reg(Nest&)>& element,
                   const Footprint& reads, Writer& out);
/// Writes a tile's elements, which `element` gives inside a nest over the layout, to memory of the
/// block: by the threads that hold first copies. `reads`: what they are computed from.
void fill_memory(State& s, const layout::ThreadValue& l, const Storage& storage,
                 const Touched& where, const std::function<Reg(Nest&)>& element, Footprint reads,
                 Writer& out);
/// Coordinates in the tensor of the place `at` of a view.
Coords tensor_place(const State& s, const View& view, const Coords& at);
/// Sets the tile `target` (registers, or memory) to the elements of v.
void assign(State& s, ValueId v, ValueId target, Writer& out);

void emit_store(State& s, const Op& op, Writer& out);
void emit_place(State& s, const Op& op, Writer& out);
void emit_reduce(State& s, const Op& op, Writer& out);
void emit_scan(State& s, const Op& op, Writer& out);
void emit_top_k(State& s, const Op& op, Writer& out);
void emit_dot(State& s, const Op& op, Writer& out);
/// An assert, lowered by first_false, and a print: a record for the host.
void emit_assert(State& s, const Op& op, Writer& out);
void emit_print(State& s, const Op& op, Writer& out);

/// A run of neighbours along the unit axis of a tensor that each thread holds in neighbouring
/// registers, read and written in one access of up to 16 bytes.
struct Run {
  int64_t count = 1;   ///< neighbours of one access
  int64_t pieces = 1;  ///< accesses that follow each other
  bool whole = false;  ///< none lies partly inside the tensor
};
/// Whether each instance has a place of its own there; what all read is near, in caches.
bool is_own(const View& view);
/// The run for tiles of layout `l` in a view, where addresses are known to allow it.
std::optional<Run> run_of(State& s, const layout::ThreadValue& l, const View& view);
void load_runs(State& s, const Op& op, const Run& run, Writer& out);
/// Whether the load had better stand where its elements are used, run by run, than take registers
/// for all of them: it is used once, of what all instances read, so that caches have it.
bool is_late(const State& s, const Op& load, const Run& run);
/// The runs of such a load whose elements the innermost loop of a nest goes through, read in the
/// loops around it; `at` is the place of the first element. Returns how element `index` reads.
std::function<Reg(const Expr& index)> read_late(State& s, Expression& e, const Op& load,
                                                const Coords& at);
/// Its parts: registers for the runs (of so many later iterations), whose name is returned; what
/// lies at the view, as memory holds it, to such registers (returns whether some runs may lie
/// across an edge of the tensor); the tile from them, with the elements of such runs.
std::string declare_runs(State& s, const Op& op, const Run& run, int64_t stages, Writer& out);
bool read_runs(State& s, const Op& op, const ViewAttr& from, const Run& run, const std::string& raw,
               Writer& out);
void unpack_runs(State& s, const Op& op, const Run& run, const std::string& raw, bool partial,
                 Writer& out);
void store_runs(State& s, const Op& op, const Run& run, Writer& out);
/// The run of a gather whose coordinate along the unit axis runs with the elements, in rows of
/// whole runs.
std::optional<Run> gather_run_of(State& s, const Op& op);
void gather_runs(State& s, const Op& op, const Run& run, Writer& out);

}  // namespace tw::cuda
