*SENSE:Minimize
NAME          branch
ROWS
 N  OBJ
 E  _C1
 E  _C2
 E  _C3
 L  _C4
 L  _C5
 E  _C6
 L  _C7
 L  _C8
 L  _C9
COLUMNS
    P1_0      _C3        1.000000000000e+00
    P1_0      _C4        1.000000000000e+00
    P1_0      _C9        6.000000000000e+00
    P1_1      _C3        1.000000000000e+00
    P1_1      _C5        1.000000000000e+00
    P1_1      _C9        3.000000000000e+00
    P2_0      _C6        1.000000000000e+00
    P2_0      _C7        1.000000000000e+00
    P2_0      _C9        3.000000000000e+00
    P2_1      _C6        1.000000000000e+00
    P2_1      _C8        1.000000000000e+00
    P2_1      _C9        3.000000000000e+00
    cost      _C9       -1.000000000000e+00
    cost      OBJ        1.000000000000e+00
    MARK      'MARKER'                 'INTORG'
    x0        _C2        1.000000000000e+00
    x0        _C3       -1.000000000000e+00
    MARK      'MARKER'                 'INTEND'
    MARK      'MARKER'                 'INTORG'
    x1        _C2        1.000000000000e+00
    x1        _C6       -1.000000000000e+00
    MARK      'MARKER'                 'INTEND'
    MARK      'MARKER'                 'INTORG'
    y0        _C1        1.000000000000e+00
    y0        _C4       -1.000000000000e+00
    y0        _C7       -1.000000000000e+00
    y0        _C9        1.400000000000e+01
    MARK      'MARKER'                 'INTEND'
    MARK      'MARKER'                 'INTORG'
    y1        _C1        1.000000000000e+00
    y1        _C5       -1.000000000000e+00
    y1        _C8       -1.000000000000e+00
    y1        _C9        1.400000000000e+01
    MARK      'MARKER'                 'INTEND'
RHS
    RHS       _C1        1.000000000000e+00
    RHS       _C2        1.000000000000e+00
    RHS       _C3        0.000000000000e+00
    RHS       _C4        0.000000000000e+00
    RHS       _C5        0.000000000000e+00
    RHS       _C6        0.000000000000e+00
    RHS       _C7        0.000000000000e+00
    RHS       _C8        0.000000000000e+00
    RHS       _C9        0.000000000000e+00
BOUNDS
 UP BND       cost       1.600000000000e+01
 BV BND       x0      
 BV BND       x1      
 BV BND       y0      
 BV BND       y1      
ENDATA
