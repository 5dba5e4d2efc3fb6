#include "tw/cli/verb.h"

int main(int argc, char** argv) { return tw::cli::main(argc, argv); }
