// SPDX-License-Identifier: BSD-2-Clause
// Where do the sentences about refused accesses of a libfabric program go?
#pragma once

#include "base/refusal_log.h"

namespace weft::device {

// To warn(), of all devices of the process. Any thread.
RefusalLog& refusal_log();

}  // namespace weft::device
