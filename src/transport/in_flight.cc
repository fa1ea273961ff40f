// SPDX-License-Identifier: BSD-2-Clause
// Which packets of a requester are in flight, missing at the peer, or acknowledged?
#include "transport/in_flight.h"

namespace weft::transport {

void InFlight::repaired(PsnRange range) {
  missing_.remove(range);
  repairs_.add(range);
  if (probes_ != 0) --probes_;
}

void InFlight::lacks(PsnRange range) {
  missing_.add(range);
  repairs_.remove(range);
  reported(range.end());
}

void InFlight::acknowledge(Psn end) {
  acknowledged_ = end;
  reported(end);
  missing_.forget_before(end);
  repairs_.forget_before(end);
}

void InFlight::probe(Psn last) {
  constexpr unsigned kProbes = 2;
  for (const PsnRange& range : repairs_) missing_.add(range);
  repairs_.clear();
  probes_ = kProbes;
  missing_.add({acknowledged_, 1});
  if (acknowledged_.before(last)) missing_.add({last, 1});
}

void InFlight::forget_missing() {
  missing_.clear();
  repairs_.clear();
}

void InFlight::start_over() {
  forget_missing();
  acknowledged_ = reported_ = next_;
}

}  // namespace weft::transport
