"""From received characters to what the model is given, in two steps.

`markup` reads the characters as they come and hands on plain text as soon as it is certain; the segmenter cuts that.
`spoken` turns a whole segment of plain text into the model's text, with numbers and signs in words by `reading_out`.
"""
