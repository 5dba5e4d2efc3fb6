#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tw::cli {

/// Everything that the grammar of the command can say; a verb takes the flags it lists.
struct Arguments {
  std::string target;
  std::string detail;  ///< a second word, where the verb takes one
  std::string device = "cpu:0";
  std::optional<std::string> dtype;  ///< absent: f32
  std::string mapping;
  std::string isa;                   ///< empty: that of this machine
  std::string source;                ///< "gemm.cpp"
  std::string text;                  ///< "my_gemm.cu"; empty: the kernel of the library
  std::string function;              ///< empty: the kernel's name
  std::vector<std::string> shape;    ///< "m=64,n=32"
  std::vector<std::string> options;  ///< "op=max"
  std::vector<std::string> inputs;   ///< "A=a.npy", "A=random:7"
  std::vector<std::string> outputs;  ///< "Y=y.npy"
  std::vector<std::string> passes;
  std::vector<std::string> peers;
  std::string callable;          ///< a file to be judged; empty: the library's kernel
  std::vector<std::string> ops;  ///< operators of ONNX
  int threads = 0;               ///< 0: all that the device has
  int seeds = 1;
  int timeout = 120;  ///< seconds
  bool check = false;
  bool profile = false;
  bool measure = false;
  std::vector<std::string> rows;     ///< files or folders of measured rows
  std::vector<std::string> against;  ///< the same, of earlier ones
  std::string before;                ///< the command of an earlier build
  std::optional<std::string> json;   ///< empty: to standard output
};

enum class Flag {
  device,
  machine,
  dtype,
  mapping,
  shape,
  option,
  input,
  output,
  source,
  text,
  function,
  isa,
  pass,
  peer,
  callable,
  op,
  threads,
  seeds,
  timeout,
  check,
  profile,
  measure,
  rows,
  against,
  before,
  json
};

/// One word of the command: `tilewright NAME [TARGET] [flags]`.
struct Verb {
  const char* name;
  const char* sentence;
  const char* target = nullptr;  ///< what TARGET is; nullptr: the verb takes none
  bool target_needed = false;
  const char* detail = nullptr;  ///< what a second word is; nullptr: the verb takes none
  std::vector<Flag> flags = {};
  const char* examples = "";
  int (*run)(const Arguments&) = nullptr;  ///< the exit code; throws tw::Error
};

const std::vector<Verb>& verbs();

/// Parses the words after the command's own name and runs the verb. Returns the exit code; never
/// throws: errors are one line on standard error.
int main(int argc, char** argv);

}  // namespace tw::cli
