"""Subjects: the C interface, its binding, and the process that a subject runs in.

header      reads include/gallocheck.h, loads a subject library and checks it
layout      records <-> C structs, the only place that converts them
binding     a subject library in this process: Library, Session
packet      a whole trace in one block of memory: pack, execute, unpack
zygote      the process that loads a subject and forks its children
worker      Worker: a trace in a process of its own; LocalRunner: the same in this one
"""
