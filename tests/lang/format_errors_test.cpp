#include <cmath>

#include "tests/lang/error_case.h"

namespace tw::test {

static const std::vector<Case> kFormats = {
    {"arithmetic on packed integers", __LINE__,
     [](Trace& k) { Tile c = load(k.input("X", i4, {k.dim("N")}).tile({0}, {8})) + 1; }},
    {"arithmetic on packed floats", __LINE__,
     [](Trace& k) { Tile c = exp(load(k.input("X", e2m1, {k.dim("N")}).tile({0}, {8}))); }},
    {"maximum of scales", __LINE__,
     [](Trace& k) {
       Tile c = row_max(load(k.input("X", e8m0, {8, 8}).tile({0, 0}, {8, 8})));
     }},
    {"dot of packed floats", __LINE__,
     [](Trace& k) {
       Tile a = load(k.input("X", e2m1, {8, 8}).tile({0, 0}, {8, 8}));
       Tile c = dot(a, a, k.zeros(f32, {8, 8}));
     }},
    {"constant past the largest", __LINE__, [](Trace& k) { k.full(e2m1, {8}, 7); }},
    {"NaN where there is none", __LINE__, [](Trace& k) { k.full(e3m2, {8}, std::nan("")); }},
    {"negative scale", __LINE__, [](Trace& k) { k.full(e8m0, {8}, -1); }},
    {"packed integer out of range", __LINE__, [](Trace& k) { k.full(i4, {8}, 8); }},
    {"bitcast to fewer bits", __LINE__, [](Trace& k) { bitcast(k.zeros(u8, {8}), u4); }},
    {"scatter of bits", __LINE__,
     [](Trace& k) { scatter(k.inout("Y", i4, {k.dim("N")}), {k.iota({8}, 0)}, 1); }},
    {"store that starts inside a byte", __LINE__,
     [](Trace& k) {
       auto [p] = k.grid(k.dim("P"));
       store(k.output("Y", i4, {k.dim("N")}).tile({p}, {3}), k.zeros(i4, {3}));
     }},
    {"store of six bits at even elements", __LINE__,
     [](Trace& k) {
       TensorRef Y = k.output("Y", e3m2, {k.dim("N")});
       for (Index i : k.range(0, k.dim("N"), 2)) store(Y.window({i}, {4}), k.zeros(e3m2, {4}));
     }},
    {"tile across blocks", __LINE__,
     [](Trace& k) {
       ScaledRef X = k.input_scaled("X", mx(e2m1), {k.dim("M"), k.dim("K")});
       Tile c = load(X.tile({0, 0}, {8, 48}));
     }},
    {"tile that starts inside a block", __LINE__,
     [](Trace& k) {
       ScaledRef X = k.input_scaled("X", {e4m3, f32, {128, 128}}, {k.dim("M"), k.dim("K")});
       auto [p] = k.grid(k.dim("P"));
       Tile c = load(X[p].tile({k.dim("S")}, {64}));
       Tile d = load(X.tile({p, 0}, {96, 128}));
     }},
    {"scales of integers", __LINE__,
     [](Trace& k) {
       k.input_scaled("X", {i4, u8, {1, 32}}, {k.dim("M"), k.dim("K")});
     }},
    {"blocks of two axes on one", __LINE__,
     [](Trace& k) {
       k.input_scaled("X", {e4m3, f32, {128, 128}}, {k.dim("K")});
     }},
    {"blocks of nothing", __LINE__,
     [](Trace& k) {
       k.input_scaled("X", {e4m3, f32, {1, 0}}, {k.dim("K")});
     }},
    {"scaled masks", __LINE__,
     [](Trace& k) {
       k.input_scaled("X", {b1, f32, {1, 32}}, {k.dim("K")});
     }},
    {"scaled tile of three axes", __LINE__,
     [](Trace& k) {
       ScaledRef X = k.input_scaled("X", mx(e4m3), {k.dim("B"), k.dim("M"), k.dim("K")});
       Tile c = load(X.tile({0, 0, 0}, {1, 8, 32}));
     }},
};

const std::vector<Case>& format_errors() { return kFormats; }

}  // namespace tw::test
