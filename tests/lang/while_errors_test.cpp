#include "tests/lang/error_case.h"

namespace tw::test {

static const std::vector<Case> kWhiles = {
    {"break out of a while", __LINE__,
     [](Trace& k) {
       {
         While loop(k);
         while (loop(k.full(b1, {}, true))) break;
       }
       k.finish();
     }},
    {"finish in a while", __LINE__,
     [](Trace& k) {
       While loop(k);
       while (loop(k.full(b1, {}, true))) k.finish();
     }},
    {"a while of a mask", __LINE__,
     [](Trace& k) {
       While loop(k);
       while (loop(k.full(b1, {8}, true))) {
       }
     }},
    {"a while of an integer, at its end", __LINE__,
     [](Trace& k) {
       Tile n = k.full(i32, {}, 9);
       While loop(k);
       for (int turn = 0; loop(turn == 0 ? n > 1 : n); ++turn) {
       }
     }},
    {"a While of another program", __LINE__,
     [](Trace& k) {
       Trace q("other");
       While loop(k);
       loop(q.full(b1, {}, true));
     }},
    {"a While used twice", __LINE__,
     [](Trace& k) {
       While loop(k);
       for (int turn = 0; turn < 3; ++turn) loop(k.full(b1, {}, true));
     }},
    {"a while in a combiner", __LINE__,
     [](Trace& k) {
       Tile x = k.zeros(f32, {8});
       reduce({x}, 0, [&](Tiles<1> a, Tiles<1> b) -> Tiles<1> {
         While loop(k);
         while (loop(a[0] < b[0])) {
         }
         return {a[0] + b[0]};
       });
     }},
    {"a type that changes in a while", __LINE__,
     [](Trace& k) {
       Tile x = k.zeros(f32, {8});
       While loop(k);
       while (loop(any(x < 1.f))) x = as_row(x);
     }},
    {"any of numbers", __LINE__, [](Trace& k) { any(k.zeros(f32, {8})); }},
};

const std::vector<Case>& while_errors() { return kWhiles; }

}  // namespace tw::test
