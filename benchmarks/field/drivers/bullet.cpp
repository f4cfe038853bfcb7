// A tower of boxes under falling spheres, with Bullet: bullet SIDE STEPS.
#include <btBulletDynamicsCommon.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

static btRigidBody *add(btDynamicsWorld &world, btCollisionShape *shape, float mass, btVector3 at)
{
    btVector3 inertia(0, 0, 0);
    if (mass > 0)
        shape->calculateLocalInertia(mass, inertia);
    btTransform place;
    place.setIdentity();
    place.setOrigin(at);
    btRigidBody *body = new btRigidBody(mass, new btDefaultMotionState(place), shape, inertia);
    world.addRigidBody(body);
    return body;
}

int main(int argc, char **argv)
{
    int side = argc > 1 ? atoi(argv[1]) : 10, steps = argc > 2 ? atoi(argv[2]) : 300;
    btDefaultCollisionConfiguration configuration;
    btCollisionDispatcher dispatcher(&configuration);
    btDbvtBroadphase broadphase;
    btSequentialImpulseConstraintSolver solver;
    btDiscreteDynamicsWorld world(&dispatcher, &broadphase, &solver, &configuration);
    world.setGravity(btVector3(0, -10, 0));
    add(world, new btStaticPlaneShape(btVector3(0, 1, 0), 0), 0, btVector3(0, 0, 0));
    btCollisionShape *box = new btBoxShape(btVector3(0.5f, 0.5f, 0.5f)), *ball = new btSphereShape(0.5f);
    std::vector<btRigidBody *> bodies;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            for (int z = 0; z < side; z++)
                bodies.push_back(add(world, (x + y + z) % 3 ? box : ball, 1, btVector3(1.05f * x + 0.02f * y, 0.6f + 1.1f * y, 1.05f * z)));
    for (int s = 0; s < steps; s++)
        world.stepSimulation(1.f / 60, 1);
    double sum = 0;
    for (btRigidBody *body : bodies)
        sum += body->getWorldTransform().getOrigin().y();
    printf("%zu bodies, sum %.6f\n", bodies.size(), sum);
    return 0;
}
