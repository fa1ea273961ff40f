// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of endpoints share?
#include "test_support.h"

#include <unistd.h>

namespace weft::messaging::testing {

RuntimeDir::RuntimeDir() : creator_(::getpid()) {
  char name[] = "/dev/shm/weft-test-XXXXXX";
  if (::mkdtemp(name) != nullptr) path_ = name;
}

RuntimeDir::~RuntimeDir() {
  std::error_code ignored;
  if (::getpid() == creator_ && !path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace weft::messaging::testing
