// The extension module. Only the files in this directory depend on Python: they check the shapes of arrays, release the
// GIL and call the core. A binding may have more than six parameters: Python passes the fields of a struct of the core
// one by one.
#include "python/arrays.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of oldgrowth.";
  // Objects that a traceback keeps alive until Python exits are not leaks.
  nanobind::set_leak_warnings(false);
  oldgrowth::bind_base(m);
  oldgrowth::bind_float_rows(m);
  oldgrowth::bind_rows(m);
  oldgrowth::bind_patch_image(m);
  oldgrowth::bind_bucket_file(m);
  oldgrowth::bind_buckets(m);
  oldgrowth::bind_growing(m);
  oldgrowth::bind_forest(m);
}
