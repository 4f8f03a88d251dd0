"""The adversary: random tiny cases on which every engine has to agree with every other and with brute force.

Given a case of a problem, with n schedules that the referee (`hwmodels` replay) accepts, v* the least of their values:

    (EQUAL)  an engine that says OPTIMAL says value = bound = v*; one that says INFEASIBLE says so only if n = 0
    (ABOVE)  whoever says a value v has v >= v*; whoever says a bound b has b <= v*
    (RULES)  more memory, bandwidth or freedom gives v' <= v*; a pin to the optimum gives v' = v*; k times all prices
             give v' = k * v*

The searches here price whole schedules by replay, or by the rules that the referee states in its docstring. They share
nothing with `formulations`, nor with the closed forms of `hwmodels`: what both had wrong would not be seen. Where a
search does not look at every schedule its least value is only an upper bound of v*, and (ABOVE) is checked for bounds
and OPTIMAL alone.
"""
