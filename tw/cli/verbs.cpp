#include "tw/cli/verbs.h"

namespace tw::cli {

// budget: table, one entry a verb
const std::vector<Verb>& verbs() {
  using enum Flag;
  static const std::vector<Verb> all = {
      {.name = "bench",
       .sentence = "time a kernel against other libraries and the machine's limit",
       .target = "a kernel, or a suite: attention gemm-bf16 gemm-gelu gemm-skinny gemv-int4 "
                 "gemv-int4-int8 gemv-int8 layernorm rmsnorm rows-in-cache sgemm sgemm-large "
                 "sgemm-layouts softmax; none: all kernels",
       .flags = {shape, dtype, option, threads, mapping, peer, rows, against, before, json},
       .examples = "  tilewright bench gemm --shape m=1024,n=1024,k=1024 --threads 1\n"
                   "  tilewright bench softmax --json=rows.json --against bench/results\n"
                   "  tilewright bench --rows rows.json --against bench/results\n"
                   "  tilewright bench sgemm --before ../old/build/release/tilewright\n"
                   "--against and --before leave with 1 when something became slower.\n",
       .run = run_bench},
      {.name = "cache",
       .sentence = "look into the cache of compiled kernels",
       .target = "list (default), show, why, clear",
       .detail = "of show: an entry; of why: a kernel",
       .flags = {shape, dtype, option, threads},
       .examples = "  tilewright cache list\n  tilewright cache why gemm --shape m=64,n=64,k=64\n",
       .run = run_cache},
      {.name = "check",
       .sentence = "test a kernel against its float64 reference",
       .target = "a kernel; none: all",
       .flags = {device, text, callable, shape, dtype, option, threads, mapping, seeds, timeout,
                 json},
       .examples =
           "  tilewright check softmax\n"
           "  tilewright check gemm --shape m=17,n=33,k=5 --seeds 20\n"
           "  tilewright check gemm --device emu:0 --shape m=70,n=33,k=50 --seeds 8\n"
           "  tilewright eject softmax --device sm_90a --output mine.cu\n"
           "  tilewright check softmax --device emu:0 --text mine.cu --seeds 8\n"
           "On emu:0 the CUDA text runs on this CPU: a race, a deadlock or a read of nothing is a\n"
           "fault, as a wrong result is, and is told with its lines. Each problem has a process "
           "of\n"
           "its own there; where none is named, those of at most 20000 elements are checked.\n"
           "An ejected file may be changed from 'struct Args' on, and get functions before it; "
           "its\n"
           "own function says how many threads and bytes of shared memory a launch has.\n",
       .run = run_check},
      {.name = "conformance",
       .sentence = "run the tests of ONNX operators in a folder",
       .target = "a folder of tests, as data/node of onnx",
       .target_needed = true,
       .flags = {op, json},
       .examples = "  tilewright conformance /usr/share/libonnx-testdata/data/node --op Conv\n"
                   "Each test compiles its kernels: all of them take minutes.\n",
       .run = run_conformance},
      {.name = "devices",
       .sentence = "list the devices of this machine, or measure one",
       .flags = {device, threads, measure, json},
       .examples = "  tilewright devices\n"
                   "  tilewright devices --measure --threads 2\n"
                   "  tilewright devices --measure --device cuda:0 --json\n"
                   "Rates are the best of small loops: what a kernel may hope for.\n",
       .run = run_devices},
      {.name = "doctor",
       .sentence = "say what of this machine works and what is missing",
       .examples = "  tilewright doctor\n"
                   "Ends as other verbs would: with the exit code of the first failure.\n",
       .run = run_doctor},
      {.name = "eject",
       .sentence = "write a kernel as source of your own, which builds without tilewright",
       .target = "a kernel",
       .target_needed = true,
       .flags = {source, function, shape, dtype, option, machine, isa, threads, mapping},
       .examples =
           "  tilewright eject softmax --output softmax.cpp\n"
           "  tilewright eject softmax --device sm_90a --output softmax.cu\n"
           "  tilewright eject gemm --option epilogue=bias --isa avx2 --output gemm.cpp\n"
           "  tilewright eject gemm --shape m=64,n=64,k=64 --name small_gemm --output small.cpp\n"
           "The function takes any extents; --shape and --threads say for which it is made.\n",
       .run = run_eject},
      {.name = "explain",
       .sentence = "say what bounds a kernel on a machine, or what steps a model takes",
       .target = "a kernel, or MODEL.onnx",
       .target_needed = true,
       .flags = {machine, shape, dtype, option, threads, mapping, rows, json},
       .examples =
           "  tilewright explain gemm --shape m=1024,n=1024,k=1024 --threads 1\n"
           "  tilewright explain softmax --shape m=8192,n=4096\n"
           "  tilewright explain gemm --device h200 --dtype bf16 --shape m=4096,n=4096,k=4096\n"
           "  tilewright explain model.onnx --shape bytes=1,2048\n"
           "The limit comes from rates that no undisturbed run exceeds, the ceiling from those\n"
           "that small hand-written loops reached here. Of a machine that is named, the limit is "
           "what\n"
           "its data sheet says, the ceiling what was reached on one; it need not be here.\n",
       .run = run_explain},
      {.name = "kernels",
       .sentence = "list the kernels of the library, or describe one",
       .target = "a kernel",
       .flags = {json},
       .examples = "  tilewright kernels\n  tilewright kernels gemm\n",
       .run = run_kernels},
      {.name = "opt",
       .sentence = "run passes on a program of the ir and print the result",
       .target = "FILE.tw, - for standard input, or the name of a kernel",
       .target_needed = true,
       .flags = {pass, mapping, shape, dtype, option, threads},
       .examples = "  tilewright opt gemm --pass canonicalize\n"
                   "  tilewright opt program.tw --pass canonicalize --pass simplify\n",
       .run = run_opt},
      {.name = "run",
       .sentence = "run a kernel or a model on tensors from files",
       .target = "a kernel, or MODEL.onnx",
       .target_needed = true,
       .flags = {input, output, shape, dtype, option, device, threads, mapping, check, profile,
                 json},
       .examples =
           "  tilewright run gemm --input A=a.npy --input B=b.npy --output C=c.npy --check\n"
           "  tilewright run softmax --shape m=4,n=1000 --input X=random:7\n"
           "  tilewright run model.onnx --input x=x.npy --output results\n"
           "  tilewright run model.onnx --shape x=1,2048 --threads 1 --json\n"
           "  tilewright run model.onnx --shape x=1,2048 --profile\n"
           "Of a kernel, --shape names axes, and each output is a file. Of a model, it names an\n"
           "input with all its extents, an input may also be FILE.pb (a TensorProto), and outputs\n"
           "go to a folder or to files of their own. --json and --profile are for models, "
           "--dtype,\n"
           "--option, --mapping and --check are for kernels.\n",
       .run = run_run},
  };
  return all;
}

}  // namespace tw::cli
