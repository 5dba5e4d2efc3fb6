#include "tw/check/contestant.h"

int main(int argc, char** argv) {
  return tw::measure::serve_worker(argc, argv, tw::check::make_contestant).value_or(1);
}
