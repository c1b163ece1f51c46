// The extension module. The files of this folder are the only code that knows Python: each checks the shapes of arrays,
// releases the GIL and calls the core.
#include "python/arrays.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of oldgrowth.";
  // Objects that a traceback still holds when Python ends are not the user's concern.
  nanobind::set_leak_warnings(false);
  oldgrowth::bind_base(m);
  oldgrowth::bind_float_rows(m);
  oldgrowth::bind_rows(m);
  oldgrowth::bind_bucket_file(m);
  oldgrowth::bind_buckets(m);
  oldgrowth::bind_growing(m);
  oldgrowth::bind_forest(m);
}
