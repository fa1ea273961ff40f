// SPDX-License-Identifier: BSD-2-Clause
// What stands for the buffers of an operation that the processor may not touch?
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace weft::messaging {

// Memory of the host in place of the buffers of one operation, whose call names it and has its
// ranges as SGEs. It lives as long as the operation.
class Staging : public boost::intrusive_ref_counter<Staging> {
 public:
  virtual ~Staging() = default;
  // The operation has succeeded: all bytes that it has fetched go to the program's buffers. An
  // errno, or 0.
  virtual int finish() = 0;
  // A message has filled the first `length` bytes of these SGEs of a receive: the same for those.
  virtual int finish_part(std::span<const LocalRange> sges, std::uint64_t length) = 0;
  // The address of the program's buffer for that of an SGE.
  virtual void* buffer_of(const void* staged) const = 0;
};

using StagingPtr = boost::intrusive_ptr<Staging>;

}  // namespace weft::messaging
