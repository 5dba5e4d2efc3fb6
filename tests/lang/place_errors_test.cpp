#include "tests/lang/error_case.h"

namespace tw::test {

static const std::vector<Case> kPlaces = {
    {"gather with too few coordinates", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", f32, {k.dim("M"), k.dim("N")});
       Tile c = gather(X, {k.iota({8}, 0)});
     }},
    {"gather past the axes", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", f32, {k.dim("N")});
       Tile c = gather(X[0][1], {});
     }},
    {"float coordinates", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", f32, {k.dim("N")});
       Tile c = gather(X, {k.zeros(f32, {8})});
     }},
    {"a fraction as coordinate", __LINE__,
     [](Trace& k) { Tile c = gather(k.input("X", f32, {k.dim("N")}), {0.5}); }},
    {"coordinates of different ranks", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", f32, {k.dim("M"), k.dim("N")});
       Tile c = gather(X, {k.iota({8}, 0), k.iota({8, 1}, 0)});
     }},
    {"a mask of integers", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", f32, {k.dim("N")});
       Tile i = k.iota({8}, 0);
       Tile c = gather(X, {i}, {.mask = i});
     }},
    {"gather with a pad that does not fit", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", u8, {k.dim("N")});
       Tile c = gather(X, {k.iota({8}, 0)}, {.pad = -1});
     }},
    {"coordinates of another program", __LINE__,
     [](Trace& k) {
       Trace q("other");
       Tile c = gather(k.input("X", f32, {k.dim("N")}), {q.iota({8}, 0)});
     }},
    {"entry that does not fit", __LINE__,
     [](Trace& k) {
       lookup({u8, {1, -1}}, k.zeros(u8, {8}));
     }},
    {"table too long", __LINE__,
     [](Trace& k) {
       lookup({f32, std::vector<Constant>(257, 0)}, k.zeros(u8, {8}));
     }},
    {"lookup of floats", __LINE__,
     [](Trace& k) {
       lookup({f32, {1, 2}}, k.zeros(f32, {8}));
     }},
    {"check of numbers", __LINE__, [](Trace& k) { k.check(k.zeros(f32, {8}), "positive"); }},
    {"print of another program", __LINE__,
     [](Trace& k) {
       Trace q("other");
       k.print("x", q.zeros(f32, {8}));
     }},
    {"scatter into an input", __LINE__,
     [](Trace& k) { scatter(k.input("X", f32, {k.dim("N")}), {k.iota({8}, 0)}, 1); }},
    {"scatter of another type", __LINE__,
     [](Trace& k) {
       scatter(k.inout("Y", f32, {k.dim("N")}), {k.iota({8}, 0)}, k.zeros(f16, {8}));
     }},
    {"atomic on bf16", __LINE__,
     [](Trace& k) {
       atomic(k.inout("Y", bf16, {k.dim("N")}), {k.iota({8}, 0)}, 1, AtomicOp::add);
     }},
    {"atomic or of floats", __LINE__,
     [](Trace& k) { atomic(k.inout("Y", f32, {k.dim("N")}), {k.iota({8}, 0)}, 1, AtomicOp::or_); }},
    {"atomic cas of floats", __LINE__,
     [](Trace& k) { atomic_cas(k.inout("Y", f32, {k.dim("N")}), {k.iota({8}, 0)}, 0, 1); }},
    {"atomic cas without what is expected", __LINE__,
     [](Trace& k) { atomic(k.inout("Y", i32, {k.dim("N")}), {k.iota({8}, 0)}, 1, AtomicOp::cas); }},
    {"atomic cas that expects another type", __LINE__,
     [](Trace& k) {
       atomic_cas(k.inout("Y", i32, {k.dim("N")}), {k.iota({8}, 0)}, k.zeros(i64, {8}), 1);
     }},
    {"scratch without elements", __LINE__,
     [](Trace& k) {
       k.scratch("s", f32, {4, 0});
     }},
    {"more scratch than there may be", __LINE__,
     [](Trace& k) {
       k.scratch("s", f32, {1 << 23});
       k.scratch("t", i64, {4, (1 << 20) + 1});
     }},
    {"scratch named like a tensor", __LINE__,
     [](Trace& k) {
       k.input("X", f32, {4});
       k.scratch("X", f32, {4});
     }},
    {"workspace of bits", __LINE__, [](Trace& k) { k.workspace("w", i4, {8}); }},
    {"in order twice", __LINE__,
     [](Trace& k) {
       k.in_order();
       k.in_order();
     }},
    {"gather in a combiner", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", f32, {k.dim("N")});
       Tile a = k.zeros(f32, {8}), i = k.iota({8}, 0);
       reduce({a, i}, 0, [&](Tiles<2> l, Tiles<2> r) -> Tiles<2> {
         return {l[0] + gather(X, {r[1]}), l[1]};
       });
     }},
};

const std::vector<Case>& place_errors() { return kPlaces; }

}  // namespace tw::test
