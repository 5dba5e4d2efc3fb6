#pragma once

#include <cstdint>
#include <vector>

#include "tw/num/dtype.h"
#include "tw/target/machine.h"
#include "tw/target/mapping.h"

namespace tw::cpu {

/// How a contraction is cut for a machine: the register tile, and the blocks that its caches hold.
/// The five loops around it are those of Goto and van de Geijn (Anatomy of high-performance matrix
/// multiplication, 2008).
struct ContractShape {
  DType type = f32;  ///< of the sum
  int lanes = 1;     ///< of one register
  int rows = 1;      ///< of the register tile
  int vectors = 1;   ///< in a row of it
  int64_t depth_block = 0, row_block = 0, col_block = 0;
  /// Operands of at most so many bytes are read where they are; packing them costs more than it
  /// gives.
  int64_t a_in_place_bytes = 0, b_in_place_bytes = 0;
  /// Columns of B whose rows fall on few sets of the first cache are packed all the same.
  bool minds_crowds = false;
  /// Rows of B that are read once, where they are, are fetched so many bytes ahead; 0: not at all.
  int64_t stream_ahead = 0;

  int cols() const { return lanes * vectors; }
  /// Heights for which there is a register tile, largest first; the others round up.
  std::vector<int> heights() const;
  bool operator==(const ContractShape&) const = default;
};

/// From the machine's registers and caches; knobs mr, nv, kc, mc, nc of the mapping overrule.
ContractShape choose_contract_shape(const CpuMachine& machine, const Mapping& mapping, DType type);

}  // namespace tw::cpu
