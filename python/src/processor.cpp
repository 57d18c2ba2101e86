// The extension module fedbits._processor, which says what this processor lacks. It is apart from _core and uses the C interface of Python,
// because it has to run on processors that _core cannot run on (fl_core/processor/).
#include "fl_core/processor/processor.h"

#include <Python.h>

namespace {

PyObject* missing(PyObject*, PyObject*) {
  char text[1024];
  fl_missing_instruction_sets(text, sizeof text);
  return PyUnicode_FromString(text);
}

PyObject* is_portable(PyObject*, PyObject*) { return PyBool_FromLong(fl_is_portable_build()); }

PyMethodDef methods[] = {
    {"missing", missing, METH_NOARGS, "Returns the beginning of a sentence about what this processor lacks, or ''."},
    {"is_portable", is_portable, METH_NOARGS, "Returns whether this is the portable build."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_processor", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__processor() { return PyModule_Create(&definition); }
