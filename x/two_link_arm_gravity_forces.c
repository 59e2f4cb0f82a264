#include "two_link_arm_gravity_forces.h"

#include <math.h>

void two_link_arm_gravity_forces(const double q[restrict 2], double result[restrict 2])
{
    (void)q;
    result[0] = 0.0;
    result[1] = 0.0;
}
