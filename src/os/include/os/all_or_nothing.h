// SPDX-License-Identifier: BSD-2-Clause
// How is memory of this process accessed that may be unmapped, without asking the kernel first?
//
// By a transaction of the processor, where it has them (Intel's RTM: Software Developer's Manual
// volume 1, chapter 16). One that touches a page which is missing, or may not be written, ends as
// if it had never begun, and no signal is raised. A system call that asks costs ten times as much.
#pragma once

namespace weft::os {

// True when this processor has such transactions.
bool has_transactions();

// all_or_nothing() does nothing in this process from now on: so that what is done instead can be
// tested on every processor. Not for use beside other threads.
void forgo_transactions();

namespace detail {

inline bool uses_transactions = has_transactions();

// All ones when a transaction has begun. When it fails, this returns once more, with the reason.
inline unsigned begin_transaction() {
  unsigned status = ~0U;
#if defined(__x86_64__)
  asm volatile("xbegin 1f\n1:" : "+a"(status)::"memory");
#endif
  return status;
}

inline void end_transaction() {
#if defined(__x86_64__)
  asm volatile("xend" ::: "memory");
#endif
}

}  // namespace detail

// Does what `work` does to memory, all at once for every other thread, and returns true; or nothing
// of it, and returns false: when a page is missing or may not be written, when another processor
// gets in between, when `work` makes a system call or touches more than a cache holds, and always
// where there are no transactions. The same may succeed when it is tried again or done without a
// transaction: false is no verdict on the memory.
template <class Work>
bool all_or_nothing(const Work& work) {
  if (!detail::uses_transactions) return false;
  if (detail::begin_transaction() != ~0U) return false;
  work();
  detail::end_transaction();
  return true;
}

}  // namespace weft::os
