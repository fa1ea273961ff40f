// SPDX-License-Identifier: BSD-2-Clause
// What the client asks a server for, over the control connection.
#pragma once

#include <cstdint>

namespace weft::bench {

struct Phase {
  enum class Kind : std::uint32_t {
    kOpen,    // always the first: open your endpoint and meet mine
    kCheck,   // one operation; number: the seed of the client's data
    kTimed,   // as many as measured; number: iterations
    kSleep,   // wait for the next phase in the kernel, without a call of libfabric
    kFinish,  // always the last; answered when the server looks at no completion any more
  } kind;
  std::uint64_t number = 0;
};

}  // namespace weft::bench
