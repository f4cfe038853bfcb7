// A pyramid of boxes that falls apart under rain of balls, with Box2D 2.4: box2d LEVELS STEPS.
#include <box2d/box2d.h>
#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv)
{
    int levels = argc > 1 ? atoi(argv[1]) : 40, steps = argc > 2 ? atoi(argv[2]) : 600;
    b2World world(b2Vec2(0.0f, -10.0f));
    b2BodyDef ground;
    b2EdgeShape edge;
    edge.SetTwoSided(b2Vec2(-200.0f, 0.0f), b2Vec2(200.0f, 0.0f));
    world.CreateBody(&ground)->CreateFixture(&edge, 0.0f);
    b2PolygonShape box;
    box.SetAsBox(0.5f, 0.5f);
    for (int i = 0; i < levels; i++)
        for (int j = i; j < levels; j++) {
            b2BodyDef def;
            def.type = b2_dynamicBody;
            def.position.Set(-0.6f * levels + 1.125f * j - 0.5625f * i, 0.75f + 1.05f * i);
            world.CreateBody(&def)->CreateFixture(&box, 5.0f);
        }
    b2CircleShape ball;
    ball.m_radius = 0.4f;
    for (int s = 0; s < steps; s++) {
        if (s % 5 == 0 && s < 1500) {
            b2BodyDef def;
            def.type = b2_dynamicBody;
            def.position.Set(-30.0f + (s * 37 % 600) * 0.1f, levels * 1.1f + 10.0f);
            world.CreateBody(&def)->CreateFixture(&ball, 2.0f);
        }
        world.Step(1.0f / 60.0f, 8, 3);
    }
    double sum = 0;
    for (b2Body *b = world.GetBodyList(); b; b = b->GetNext())
        sum += b->GetPosition().x + b->GetPosition().y;
    printf("%d bodies, sum %.6f\n", world.GetBodyCount(), sum);
    return 0;
}
