#include "tw/target/machine.h"

#include "tw/base/error.h"

#include "tests/support/expect_error.h"

namespace tw {

TEST(Machine, NamedOnesAreConsistent) {
  for (const char* isa : {"avx2", "avx512", "neon", "generic"}) {
    const CpuMachine& m = machine_named(isa);
    EXPECT_EQ(m.isa, isa);
    EXPECT_FALSE(m.march.empty()) << isa;
    EXPECT_LT(m.l1d, m.l2) << isa;
    EXPECT_LT(m.l2, m.l3) << isa;
    EXPECT_EQ(m.vector_bytes & (m.vector_bytes - 1), 0) << isa;
  }
  EXPECT_EQ(machine_named("avx512").vector_bytes, 64);
  EXPECT_EQ(machine_named("avx512").vector_registers, 32);
  EXPECT_EQ(machine_named("avx2").vector_bytes, 32);
}

TEST(Machine, TextShowsEveryFieldThatLoweringMaySee) {
  EXPECT_EQ(to_string(machine_named("avx2")),
            "AMD Zen 3 isa=avx2 march=x86-64-v3 vector_bytes=32 vector_registers=16 vnni=0 "
            "fma_pipes=2 l1d=32768 l2=524288 l3=33554432 cores=8");
}

TEST(Machine, UnknownNameIsAnError) {
  TW_EXPECT_ERROR(UserError, "unknown machine 'sse9'; known machines: avx2",
                  [] { machine_named("sse9"); });
}

}  // namespace tw
