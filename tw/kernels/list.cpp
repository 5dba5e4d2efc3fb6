#include <algorithm>

#include "tw/kernels/attention/attention.h"
#include "tw/kernels/attention/backward.h"
#include "tw/kernels/conv/conv.h"
#include "tw/kernels/elementwise/elementwise.h"
#include "tw/kernels/entry.h"
#include "tw/kernels/gemm/gemm.h"
#include "tw/kernels/histogram/histogram.h"
#include "tw/kernels/index/index.h"
#include "tw/kernels/loss/loss.h"
#include "tw/kernels/quant/quant.h"
#include "tw/kernels/random/dropout.h"
#include "tw/kernels/rope/rope.h"
#include "tw/kernels/rows/rows.h"
#include "tw/kernels/scaled/scaled.h"
#include "tw/kernels/scan/scan.h"
#include "tw/kernels/select/select.h"

namespace tw::kernels {

const std::vector<KernelEntry>& kernel_list() {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> list;
    for (auto family :
         {attention_entries, attention_backward_entries, conv_entries, elementwise_entries,
          gemm_entries, histogram_entries, index_entries, loss_entries, pool_entries, quant_entries,
          random_entries, rope_entries, row_entries, scaled_entries, scan_entries, select_entries})
      for (KernelEntry& k : family()) list.push_back(std::move(k));
    std::ranges::sort(list, {}, [](const KernelEntry& k) { return std::string(k.name); });
    return list;
  }();
  return all;
}

}  // namespace tw::kernels
