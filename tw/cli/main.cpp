#include "tw/cli/verb.h"
#include "tw/emu/device.h"

int main(int argc, char** argv) {
  tw::register_emulator();
  return tw::cli::main(argc, argv);
}
