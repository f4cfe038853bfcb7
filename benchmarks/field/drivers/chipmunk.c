/* Circles and boxes in a tumbling drum, with Chipmunk 7: chipmunk BODIES STEPS. */
#include <chipmunk/chipmunk.h>
#include <stdio.h>
#include <stdlib.h>

static void add_sum(cpBody *body, void *sum)
{
    *(double *)sum += cpBodyGetPosition(body).x + cpBodyGetPosition(body).y;
}

int main(int argc, char **argv)
{
    int bodies = argc > 1 ? atoi(argv[1]) : 1500, steps = argc > 2 ? atoi(argv[2]) : 600;
    cpSpace *space = cpSpaceNew();
    cpSpaceSetIterations(space, 10);
    cpSpaceSetGravity(space, cpv(0, -600));
    cpVect a = cpv(-400, -400), b = cpv(-400, 400), c = cpv(400, 400), d = cpv(400, -400);
    cpVect corner[] = {a, b, c, d};
    cpBody *drum = cpSpaceAddBody(space, cpBodyNewKinematic());
    cpBodySetAngularVelocity(drum, 0.4);
    for (int i = 0; i < 4; i++)
        cpShapeSetFriction(cpSpaceAddShape(space, cpSegmentShapeNew(drum, corner[i], corner[(i + 1) % 4], 4)), 1);
    for (int i = 0; i < bodies; i++) {
        cpVect at = cpv(-300 + i % 40 * 15, -300 + i / 40 * 15);
        cpBody *body = cpSpaceAddBody(space, cpBodyNew(1, cpMomentForCircle(1, 0, 5, cpvzero)));
        cpBodySetPosition(body, at);
        cpShape *shape = i % 2 ? cpCircleShapeNew(body, 5, cpvzero) : cpBoxShapeNew(body, 9, 9, 0);
        cpShapeSetFriction(cpSpaceAddShape(space, shape), 0.7);
    }
    for (int s = 0; s < steps; s++)
        cpSpaceStep(space, 1.0 / 120);
    double sum = 0;
    cpSpaceEachBody(space, add_sum, &sum);
    printf("sum %.6f\n", sum);
    return 0;
}
