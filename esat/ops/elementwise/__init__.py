"""Elementwise ops: one record each, grouped by topic.

========================  ==================================================================================
``record``                the record itself, and the helpers gradients are written with
``code``, ``facts``       its parts: scalar code templates, algebraic facts
topic modules             the records; each exports them as ``OPS``
========================  ==================================================================================
"""
